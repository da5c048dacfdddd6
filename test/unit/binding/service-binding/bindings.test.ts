import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceExportRequests,
  apiServiceExports,
  boundSchemas,
  syncerFinalizer,
  unbindFinalizer,
  unbindPolicyAnnotation,
} from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import { BindingReconciler } from '../../../../src/binding/service-binding/binding-reconciler.ts';
import { BindingWriter } from '../../../../src/binding/service-binding/binding-writer.ts';
import { CrdWriter } from '../../../../src/binding/service-binding/crd-writer.ts';
import { Releaser } from '../../../../src/binding/service-binding/releaser.ts';
import type { Work } from '../../../../src/binding/service-binding/running-syncers.ts';
import type { Result } from '../../../../src/engine/result.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import type { Call } from '../../../support/binding/memory-cluster.ts';
import {
  conditionsOf,
  crdName,
  crdSpec,
  FakeSession,
  kettles,
  MemoryStage,
  ownerOf,
  statusOf,
} from '../../../support/binding/memory-stage.ts';
import {
  boundSchemaManifest,
  exportManifest,
  exportRequestManifest,
  secretsClaim,
} from '../../../support/binding/objects.ts';

const { signal } = new AbortController();

describe('the reconciler of bindings', () => {
  let stage: MemoryStage;
  let reconciler: BindingReconciler;
  beforeEach(() => {
    stage = new MemoryStage();
    reconciler = make();
  });

  function make(allowed?: readonly string[]): BindingReconciler {
    const { deps, sessions, syncers } = stage;
    return new BindingReconciler({
      ...deps,
      sessions,
      syncers,
      allowed,
      writer: new BindingWriter(deps),
      crdWriter: new CrdWriter({ ...deps, crds: deps.stores.crds }),
      releaser: new Releaser(deps),
    });
  }

  const look = (): Promise<Result> => reconciler.reconcile('kettles', signal);
  const said = () => conditionsOf(stage.binding());

  async function bound(): Promise<void> {
    stage.bind();
    stage.offer();
    await look();
    stage.establish();
    await look();
  }

  const working = (work: Partial<Work> = {}): Work => ({
    controllers: [],
    resync() {},
    problems: () => [],
    close() {},
    ...work,
  });

  it('makes what an export offers and says so in one write each', async () => {
    stage.bind();
    stage.offer();
    assert.deepEqual(await look(), { kind: 'done' });
    assert.deepEqual(stage.consumer.writes, [
      'patch apiservicebindings kettles',
      `create customresourcedefinitions ${crdName}`,
      'patch apiservicebindings/status kettles',
    ]);
    const crd = stage.crd();
    assert.deepEqual(crd?.spec, crdSpec);
    assert.deepEqual(crd?.metadata.ownerReferences, [ownerOf('uid-of-kettles')]);
    const binding = stage.binding();
    assert.deepEqual(binding?.metadata.finalizers, [unbindFinalizer]);
    const { conditions: _, ...status } = statusOf(binding);
    assert.deepEqual(status, {
      boundSchemas: [{ group: 'kitchen.example', resource: 'kettles' }],
      permissionClaims: [secretsClaim],
      providerPrettyName: 'Acme',
    });
    const types = ['Ready', 'Connected', 'Heartbeating', 'InformersSynced', 'SchemaInSync', 'SecretValid'];
    assert.deepEqual(said(), Object.fromEntries(types.map((type) => [type, { status: 'True' }])));
    assert.deepEqual(
      stage.events.map(({ type, reason }) => [type, reason]),
      [['Normal', 'Ready']],
    );
  });

  it('writes nothing when nothing has changed, however often it looks', async () => {
    await bound();
    const before = stage.consumer.writes.length;
    for (let i = 0; i < 20; i++) {
      await stage.clock.advance(60_000);
      await look();
    }
    assert.equal(stage.consumer.writes.length, before);
  });

  it('decides nothing on a binding that the store shows older than what was written', async () => {
    stage.bind();
    const { bindings } = stage.deps.stores;
    const old = bindings.get('kettles');
    await look();
    const { get } = bindings;
    bindings.get = (key) => (key === 'kettles' ? old : get.call(bindings, key));
    const writes = stage.consumer.writes.length;
    assert.equal((await look()).kind, 'notReady');
    assert.equal(stage.consumer.writes.length, writes);
  });

  const lasting: [what: string, arrange: () => void, ready: string, also?: Record<string, string>][] = [
    [
      'a Secret that is missing',
      () => {
        stage.sessions.answer = {
          kind: 'invalid',
          reason: 'KubeconfigSecretNotFound',
          message: 'secret a/b not found',
        };
      },
      'Error KubeconfigSecretNotFound: secret a/b not found',
    ],
    [
      'a provider that cannot be reached',
      () => {
        stage.session.state = { kind: 'unreachable', message: 'Informers did not sync within 2m30s: no route' };
        stage.sessions.beat = undefined;
      },
      'Error InformerSyncTimeout: Informers did not sync within 2m30s: no route. It goes on',
    ],
    [
      'a heartbeat that is refused',
      () => {
        stage.offer();
        stage.sessions.beat = { ok: false, message: 'forbidden' };
      },
      'Warning ClusterBindingUpdateFailed: forbidden',
    ],
    [
      'no export',
      () => {},
      'Error APIServiceExportNotFound: the provider has no APIServiceExport kettles in its namespace kb-acme',
      { SchemaInSync: 'Unknown' },
    ],
    [
      'a request that the provider refused, whose reason is data',
      () => {
        const status = { phase: 'Failed', terminalMessage: '100% %s $& {0}' };
        stage.provider.put(apiServiceExportRequests, exportRequestManifest({ status }));
      },
      'Error APIServiceExportFailed: the provider refused the request for kettles: 100% %s $& {0}',
    ],
    [
      'a BoundSchema that is missing',
      () => stage.provider.put(apiServiceExports, exportManifest()),
      `Error BoundSchemaFetchFailed: the provider exports ${crdName}`,
      { SchemaInSync: 'False' },
    ],
    [
      'a BoundSchema that is about something else',
      () => {
        stage.offer();
        const { spec } = boundSchemaManifest();
        stage.provider.put(boundSchemas, boundSchemaManifest({ spec: { ...(spec as object), group: 'apps' } }));
      },
      `Error CustomResourceDefinitionCreateFailed: BoundSchema ${crdName} describes kettles.apps`,
      { SchemaInSync: 'False' },
    ],
    [
      'a CRD of somebody else',
      () => {
        stage.offer();
        stage.establish('uid-of-another');
      },
      `Error ForeignCustomResourceDefinition: CustomResourceDefinition ${crdName} exists`,
      { SchemaInSync: 'False' },
    ],
    [
      'a resource that is not allowed',
      () => {
        stage.offer();
        reconciler = make(['pans.kitchen.example']);
      },
      `Error ResourceNotAllowed: the provider exports ${crdName}`,
      { SchemaInSync: 'False' },
    ],
    [
      'a schema that the API server refuses',
      () => {
        stage.offer();
        stage.consumer.fault = refusing('create', new ApiError(422, 'Invalid', 'spec.validation: not structural'));
      },
      `Error CustomResourceDefinitionCreateFailed: the API server of this cluster refuses CustomResourceDefinition ${crdName}: spec.validation: not structural`,
      { SchemaInSync: 'False' },
    ],
    [
      'rights to CRDs that are missing',
      () => {
        stage.offer();
        stage.consumer.fault = refusing('create', new ApiError(403, 'Forbidden', 'may not create'));
      },
      `Warning CustomResourceDefinitionNotWritten: CustomResourceDefinition ${crdName} could not be written: may not create`,
      { Connected: 'True', SchemaInSync: 'False' },
    ],
    [
      'a claim that is not shared',
      () => {
        stage.offer();
        const { spec } = exportManifest();
        const permissionClaims = [secretsClaim, { group: '', resource: 'pods', selector: {} }];
        stage.provider.put(apiServiceExports, exportManifest({ spec: { ...(spec as object), permissionClaims } }));
      },
      'Warning InvalidPermissionClaim: the provider claims pods.core, which is not shared',
      { SchemaInSync: 'True' },
    ],
    [
      'objects that are not in step',
      () => {
        stage.offer();
        const problems = () => ['team-a/a: forbidden', ...Array.from({ length: 9 }, (_, i) => `o${i}: bad`)];
        stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', work: working({ problems }) });
      },
      'Warning ObjectsNotInSync: team-a/a: forbidden. o0: bad. o1: bad. o2: bad. o3: bad. and 5 more',
      { SchemaInSync: 'True' },
    ],
  ];
  const refusing =
    (verb: Call['verb'], error: Error) =>
    (call: Call): void => {
      if (call.verb === verb && call.plural === 'customresourcedefinitions') throw error;
    };

  for (const [what, arrange, ready, also = {}] of lasting) {
    it(`tells of ${what}, once`, async () => {
      arrange();
      stage.bind();
      for (let i = 0; i < 10; i++) {
        await look();
        await stage.clock.advance(90_000);
      }
      const { Ready, ...others } = said();
      const found = `${Ready?.severity} ${Ready?.reason}: ${Ready?.message}`;
      assert.equal(found.slice(0, ready.length), ready);
      for (const [type, status] of Object.entries(also)) assert.equal(others[type]?.status, status, type);
      const writes = stage.consumer.writes.filter((write) => write.startsWith('patch apiservicebindings/status'));
      assert.equal(writes.length, 1);
    });
  }

  it('keeps what an earlier Secret reached while the present one is of no use', async () => {
    await bound();
    const { session } = stage;
    stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad', lastGood: session };
    await look();
    const { SecretValid, Connected, SchemaInSync } = said();
    assert.deepEqual([SecretValid?.status, Connected?.status, SchemaInSync?.status], ['False', 'True', 'True']);
    stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad' };
    await look();
    assert.deepEqual([said()['Connected']?.status, said()['Heartbeating']?.status], ['Unknown', 'Unknown']);
    assert.ok(stage.crd());
  });

  it('does not call a binding ready before its provider has been read, and says nothing anew after a restart', async () => {
    stage.session.state = { kind: 'connecting' };
    stage.bind();
    stage.offer();
    await look();
    assert.deepEqual(said()['Ready'], {
      status: 'False',
      severity: 'Info',
      reason: 'InformersSyncing',
      message: 'reading what the provider offers',
    });
    assert.equal(stage.crd(), undefined);
    stage.session.state = { kind: 'connecting', problem: '401: Unauthorized' };
    await look();
    assert.deepEqual([said()['Ready']?.severity, said()['Ready']?.reason], ['Warning', 'InformersSyncing']);
    assert.match(
      said()['Ready']?.message ?? '',
      /could not be read so far: 401: Unauthorized\. It goes on trying; check/,
    );
    stage.session.state = { kind: 'synced' };
    await look();
    stage.establish();
    await look();
    stage.session.state = { kind: 'connecting' };
    reconciler = make();
    const { writes } = stage.consumer;
    await look();
    assert.deepEqual(stage.consumer.writes, writes);
  });

  it('brings a CRD back to what the provider says, whoever changed it', async () => {
    await bound();
    const crd = stage.crd();
    assert.ok(crd);
    stage.consumer.put(customResourceDefinitions, { ...crd, spec: { ...crdSpec, scope: 'Cluster' } });
    await look();
    assert.deepEqual(stage.crd()?.spec, crdSpec);
    assert.deepEqual(stage.crd()?.metadata.finalizers, crd.metadata.finalizers);
    const { writes } = stage.consumer;
    assert.equal(writes.at(-1), `replace customresourcedefinitions ${crdName}`);
    await look();
    reconciler = make();
    await look();
    assert.deepEqual(stage.consumer.writes, writes);
    stage.consumer.drop(customResourceDefinitions, { name: crdName });
    await look();
    assert.ok(stage.crd());
  });

  it('writes a CRD that the API server stores differently no more than once', async () => {
    await bound();
    const crd = stage.crd();
    assert.ok(crd);
    // As defaulting would: it is never what we send.
    stage.consumer.put(customResourceDefinitions, { ...crd, spec: { ...crdSpec, preserveUnknownFields: false } });
    const { replace } = stage.consumer.client;
    stage.consumer.client.replace = (resource, object, options) =>
      replace(resource, { ...object, spec: { ...crdSpec, preserveUnknownFields: false } }, options);
    const before = stage.consumer.calls.length;
    for (let i = 0; i < 5; i++) await look();
    assert.equal(stage.consumer.calls.slice(before).filter(({ verb }) => verb === 'replace').length, 1);
  });

  it('follows a schema that changes', async () => {
    await bound();
    const { spec } = boundSchemaManifest();
    const { versions, ...rest } = spec as { versions: object[] };
    stage.provider.put(
      boundSchemas,
      boundSchemaManifest({ spec: { ...rest, versions: [{ ...versions[0], schema: { type: 'object' } }] } }),
    );
    await look();
    const text = JSON.stringify(stage.crd()?.spec);
    assert.match(text, /"openAPIV3Schema":\{"type":"object"\}/);
  });

  it('takes over a CRD that another konnector made for the binding', async () => {
    stage.establish();
    stage.bind();
    stage.offer();
    await look();
    assert.deepEqual(stage.consumer.writes, [
      'patch apiservicebindings kettles',
      'patch apiservicebindings/status kettles',
    ]);
    assert.equal(said()['Ready']?.status, 'True');
  });

  it('says that a name is taken, and that a CRD is going', async () => {
    await bound();
    const crd = stage.crd();
    assert.ok(crd);
    const taken = { type: 'NamesAccepted', status: 'False', reason: 'KindConflict', message: '"Kettle" is in use' };
    stage.consumer.put(customResourceDefinitions, { ...crd, status: { conditions: [taken] } });
    await look();
    assert.equal(said()['SchemaInSync']?.reason, 'CustomResourceDefinitionNamesNotAccepted');
    assert.match(said()['SchemaInSync']?.message ?? '', /"Kettle" is in use/);
    await stage.consumer.client.delete(customResourceDefinitions, { name: crdName });
    await look();
    assert.equal(said()['SchemaInSync']?.reason, 'CustomResourceDefinitionTerminating');
  });

  it('tells that versions converted by a webhook of the provider are not bound', async () => {
    stage.bind();
    stage.offer();
    const { spec } = boundSchemaManifest();
    const { versions, ...rest } = spec as { versions: object[] };
    const conversion = { strategy: 'Webhook', webhook: { clientConfig: { url: 'https://evil.example' } } };
    const two = [{ ...versions[0] }, { ...versions[0], name: 'v2', storage: false }];
    stage.provider.put(boundSchemas, boundSchemaManifest({ spec: { ...rest, versions: two, conversion } }));
    await look();
    const found = stage.crd()?.spec as { conversion: unknown; versions: { name: string; served: boolean }[] };
    assert.deepEqual(found.conversion, { strategy: 'None' });
    assert.deepEqual(
      found.versions.map(({ name, served }) => [name, served]),
      [
        ['v1', true],
        ['v2', false],
      ],
    );
    assert.ok(stage.events.some(({ reason, note }) => reason === 'ConversionNotBound' && note.includes('v1 alone')));
  });

  describe('when the export is gone', () => {
    const finalizers = () => stage.consumer.find(kettles, { namespace: 'team-a', name: 'blue' })?.metadata.finalizers;

    beforeEach(async () => {
      await bound();
      stage.object();
      stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
    });

    it('lets go of the objects, and keeps them and their CRD', async () => {
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
      assert.ok(stage.crd());
      assert.deepEqual(stage.deps.stores.bindings.get('kettles')?.boundSchemas.length, 1);
      const calls = () => stage.consumer.calls.length + stage.provider.calls.length;
      const before = calls();
      await look();
      assert.equal(calls(), before);
    });

    it('waits until their syncer has stopped', async () => {
      const running = { binding: 'kettles', crd: crdName, mode: 'sync', work: working() } as const;
      stage.syncers.add(running);
      await look();
      assert.ok(finalizers()?.includes(syncerFinalizer));
      stage.syncers.delete(running);
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
    });

    it('lets go of nothing while the provider does not even serve exports', async () => {
      stage.provider.fault = () => {
        throw new ApiError(404, '', '404 page not found');
      };
      await assert.rejects(look(), /page not found/);
      assert.ok(finalizers()?.includes(syncerFinalizer));
    });

    it('lets go of nothing while the provider does not say so itself', async () => {
      stage.provider.fault = () => {
        throw new ApiError(403, 'Forbidden', 'no rights');
      };
      await assert.rejects(look(), /no rights/);
      assert.ok(finalizers()?.includes(syncerFinalizer));
    });
  });

  describe('unbinding', () => {
    const annotate = (value: string) =>
      stage.bind({ ...stage.binding()?.metadata, annotations: { [unbindPolicyAnnotation]: value } });
    const remove = () => stage.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
    const finalizers = () => stage.consumer.find(kettles, { namespace: 'team-a', name: 'blue' })?.metadata.finalizers;
    const dropCrd = () => stage.consumer.drop(customResourceDefinitions, { name: crdName });

    beforeEach(async () => {
      await bound();
      stage.object();
    });

    it('deletes the CRD, waits for it, then lets the binding go', async () => {
      await remove();
      assert.equal((await look()).kind, 'after');
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
      assert.ok(finalizers()?.includes(syncerFinalizer), 'copies are deleted before');
      assert.deepEqual(said()['Connected'], {
        status: 'False',
        severity: 'Info',
        reason: 'Unbinding',
        message: `waiting for CustomResourceDefinitions to go: ${crdName}`,
      });
      const { writes } = stage.consumer;
      await look();
      assert.deepEqual(stage.consumer.writes, writes);
      dropCrd();
      await look();
      assert.match(said()['Connected']?.message ?? '', /waiting for the synchronisation to look for copies/);
      let held = Number.POSITIVE_INFINITY;
      const work = working({ held: () => held });
      stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'drain', work });
      await look();
      assert.match(said()['Connected']?.message ?? '', /waiting for objects that are being counted to go/);
      held = 2;
      await look();
      assert.match(said()['Connected']?.message ?? '', /waiting for 2 objects to go at the provider/);
      held = 0;
      await look();
      assert.equal(stage.binding(), undefined);
    });

    it('leaves the copies when told to, but not before their syncer has stopped', async () => {
      annotate('Orphan');
      await remove();
      const running = { binding: 'kettles', crd: crdName, mode: 'sync', work: working() } as const;
      stage.syncers.add(running);
      await look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
      stage.syncers.delete(running);
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
    });

    it('does so without any provider', async () => {
      annotate('Orphan');
      stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretNotFound', message: 'gone' };
      await remove();
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
      dropCrd();
      await look();
      assert.equal(stage.binding(), undefined);
    });

    it('deletes nothing while the provider cannot be told, and says what to do', async () => {
      stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretNotFound', message: 'gone' };
      await remove();
      for (let i = 0; i < 5; i++) await look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
      assert.match(said()['Connected']?.message ?? '', /no usable kubeconfig.*unbind-policy to Orphan/);
    });

    it('takes no slip of the pen for a policy', async () => {
      annotate('orphan');
      await remove();
      await look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
      assert.match(said()['Connected']?.message ?? '', /unbind-policy is "orphan"; set it to Delete or Orphan/);
    });

    it('says so when the schema does not fit the objects any more', async () => {
      const { spec, ...rest } = boundSchemaManifest();
      stage.provider.put(boundSchemas, { ...rest, spec: { ...Object(spec), scope: 'Cluster' } });
      await remove();
      await look();
      assert.match(
        said()['Connected']?.message ?? '',
        /no BoundSchema .* that fits, .* set the annotation .* to Orphan/,
      );
    });

    it('lets go of objects whose export is gone', async () => {
      stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
      await remove();
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
    });

    it('leaves a CRD that was taken from it a moment ago', async () => {
      const crd = stage.crd();
      assert.ok(crd);
      await remove();
      stage.consumer.deliver = () => undefined;
      stage.consumer.put(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, ownerReferences: [] } });
      await look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
    });

    it('leaves a CRD of somebody else alone', async () => {
      const crd = stage.crd();
      assert.ok(crd);
      stage.consumer.put(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, ownerReferences: [] } });
      await remove();
      await look();
      assert.equal(stage.binding(), undefined);
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
    });

    it('tells why it does not get on, and tries again', async () => {
      stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
      stage.provider.fault = () => {
        throw new TransportError('connect ECONNREFUSED', undefined, true);
      };
      await remove();
      assert.equal((await look()).kind, 'retry');
      assert.match(said()['Connected']?.message ?? '', /could not be unbound: connect ECONNREFUSED/);
      assert.ok(finalizers()?.includes(syncerFinalizer));
    });

    it('lets go of objects of a binding whose finalizer was forced off', async () => {
      stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
      await look();
      assert.deepEqual(finalizers(), ['example.com/other']);
    });
  });

  it('tells how it stands, though what an earlier one of its name had cannot be let go of', async () => {
    await bound();
    stage.object();
    const binding = stage.binding();
    assert.ok(binding);
    stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
    const { status: _, ...fresh } = binding;
    stage.consumer.put(apiServiceBindings, { ...fresh, metadata: { ...binding.metadata, uid: 'another' } });
    stage.consumer.fault = ({ verb, plural }) => {
      if (verb === 'patch' && plural === 'kettles') throw new ApiError(403, 'Forbidden', 'may not patch');
    };
    await assert.rejects(look());
    assert.equal(said()['Connected']?.reason, 'ForeignCustomResourceDefinition');
  });

  it('lets go of nothing when a binding is there that cannot be read', async () => {
    await bound();
    stage.object();
    const finalizers = () => stage.consumer.find(kettles, { namespace: 'team-a', name: 'blue' })?.metadata.finalizers;
    const binding = stage.binding();
    assert.ok(binding);
    stage.consumer.put(apiServiceBindings, { ...binding, spec: { kubeconfigSecretRef: 'odd' } });
    assert.equal(stage.deps.stores.bindings.get('kettles'), undefined);
    await look();
    assert.ok(finalizers()?.includes(syncerFinalizer));
    stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
    await look();
    assert.deepEqual(finalizers(), ['example.com/other']);
  });

  it('is not concerned with sessions of another provider', async () => {
    await bound();
    const other = new FakeSession(new MemoryStage().provider);
    stage.sessions.answer = { kind: 'session', session: other };
    await look();
    assert.equal(said()['Connected']?.reason, 'APIServiceExportNotFound');
  });
});
