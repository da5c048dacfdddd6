import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceExportRequests,
  apiServiceExports,
  boundSchemas,
  claimableAnnotation,
  unbindFinalizer,
} from '../../../../src/api/binding/names.ts';
import type { RefusedWatch } from '../../../../src/binding/sync-engine/syncer.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import type { Call } from '../../../support/binding/memory-cluster.ts';
import { crdName, crdSpec, FakeSession, ownerOf, statusOf } from '../../../support/binding/memory-stage.ts';
import {
  bindingManifest,
  boundSchemaManifest,
  exportManifest,
  exportRequestManifest,
  secretsClaim,
} from '../../../support/binding/objects.ts';
import { pluck } from '../../../support/pluck.ts';
import { BindingStage, tooLarge, working } from './binding-stage.ts';

const claiming = (...resources: string[]) => {
  const permissionClaims = resources.map((resource) => ({ group: '', resource, selector: {} }));
  return exportManifest({ spec: { ...(exportManifest().spec as object), permissionClaims } });
};

describe('the reconciler of bindings', () => {
  let stage: BindingStage;
  beforeEach(() => {
    stage = new BindingStage();
  });

  it('creates the CRDs of an export and reports the status with one write each', async () => {
    stage.bind();
    stage.offer();
    assert.deepEqual(await stage.look(), { kind: 'done' });
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
    const { Ready, InformersSynced, ...others } = stage.said();
    const types = ['Connected', 'Heartbeating', 'SchemaInSync', 'SecretValid'];
    assert.deepEqual(others, Object.fromEntries(types.map((type) => [type, { status: 'True' }])));
    assert.deepEqual([Ready?.status, InformersSynced?.reason], ['False', 'InformersSyncing']);
  });

  it('is ready only when the API server serves the bound kinds', async () => {
    stage.bind();
    await stage.look();
    assert.equal(stage.said()['InformersSynced']?.status, 'True', 'there is nothing to serve yet');
    stage.offer();
    const syncer = working({ served: () => served });
    stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', syncer });
    let served = false;
    for (const step of [() => {}, () => stage.establish()]) {
      step();
      await stage.look();
      assert.deepEqual([stage.said()['Ready']?.severity, stage.said()['Ready']?.reason], ['Info', 'InformersSyncing']);
      assert.match(stage.said()['Ready']?.message ?? '', /objects of kettles\.kitchen\.example in this cluster yet/);
    }
    served = true;
    await stage.look();
    assert.equal(stage.said()['Ready']?.status, 'True');
    assert.deepEqual(stage.events.map(({ type, reason }) => [type, reason]).slice(-1), [['Normal', 'Ready']]);
  });

  it('names five of the kinds that are not listed yet', async () => {
    const plurals = Array.from({ length: 7 }, (_, i) => `kettles${i}`);
    const { spec, ...schema } = boundSchemaManifest();
    for (const plural of plurals) {
      const metadata = { ...schema.metadata, name: `${plural}.kitchen.example` };
      const names = { plural, kind: plural, singular: plural };
      stage.provider.put(boundSchemas, { ...schema, metadata, spec: { ...Object(spec), names } });
    }
    const resources = plurals.map((resource) => ({ group: 'kitchen.example', resource, versions: ['v1'] }));
    stage.provider.put(apiServiceExports, exportManifest({ spec: { ...Object(exportManifest().spec), resources } }));
    stage.bind();
    await stage.look();
    const { message = '' } = stage.said()['InformersSynced'] ?? {};
    assert.match(message, /objects of kettles0\..*, kettles4\.kitchen\.example, and 2 more in this cluster yet/);
  });

  it('keeps the condition about objects until a restarted syncer has listed them', async () => {
    await stage.bound();
    stage.stopServing();
    let served = true;
    let problems = ['kettles team-a/blue: refused'];
    const syncer = working({ served: () => served, problems: () => problems });
    const running = { binding: 'kettles', crd: crdName, mode: 'sync', syncer } as const;
    stage.syncers.add(running);
    await stage.look();
    const found = stage.said()['Connected'];
    assert.equal(found?.reason, 'ObjectsNotInSync');
    [served, problems] = [false, []];
    stage.syncers.delete(running);
    await stage.look();
    stage.syncers.add(running);
    await stage.look();
    assert.deepEqual(stage.said()['Connected'], found);
    served = true;
    await stage.look();
    assert.equal(stage.said()['Ready']?.status, 'True', 'nothing was found any more');
  });

  it('writes nothing planned from an older binding than the last write', async () => {
    stage.bind();
    const { bindings } = stage.deps.stores;
    const old = bindings.get('kettles');
    const { get } = bindings;
    bindings.get = (key) => (key === 'kettles' ? old : get.call(bindings, key));
    await stage.look();
    const written = stage.binding()?.metadata.resourceVersion;
    assert.equal((await stage.look()).kind, 'done');
    assert.equal(stage.binding()?.metadata.resourceVersion, written);
  });

  const exportAt = { namespace: 'kb-acme', name: 'kettles' };
  const lasting: [what: string, arrange: () => unknown, ready: string, also?: Record<string, string>][] = [
    [
      'a missing Secret',
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
      'an unreachable provider',
      () => {
        stage.provider.drop(apiServiceExports, exportAt);
        stage.session.state = { kind: 'unreachable', message: 'Informers did not sync within 2m30s: no route' };
        stage.sessions.beat = undefined;
      },
      'Error InformerSyncTimeout: Informers did not sync within 2m30s: no route; the server',
    ],
    [
      'a rejected heartbeat',
      () => {
        stage.sessions.beat = { ok: false, message: 'forbidden' };
      },
      'Warning ClusterBindingUpdateFailed: forbidden',
    ],
    [
      'no export',
      () => stage.provider.drop(apiServiceExports, exportAt),
      'Error APIServiceExportNotFound: the provider has no APIServiceExport kettles in namespace kb-acme',
      { SchemaInSync: 'Unknown' },
    ],
    [
      'a request that the provider rejected, with its reason as data',
      () => {
        stage.provider.drop(apiServiceExports, exportAt);
        const status = { phase: 'Failed', terminalMessage: '100% %s $& {0}' };
        stage.provider.put(apiServiceExportRequests, exportRequestManifest({ status }));
      },
      'Error APIServiceExportFailed: the provider rejected the APIServiceExportRequest kettles: 100% %s $& {0}; ask the provider to allow it and run kubectl bind again, or delete this binding, with the objects of the kinds that it bound',
    ],
    [
      'a missing BoundSchema',
      () => stage.provider.drop(boundSchemas, { namespace: 'kb-acme', name: crdName }),
      `Error BoundSchemaFetchFailed: the provider exports ${crdName}`,
      { SchemaInSync: 'False' },
    ],
    [
      'an export that is too large',
      () => stage.provider.put(apiServiceExports, exportManifest({ spec: tooLarge() })),
      'Error APIServiceExportInvalid: APIServiceExport kettles of the provider is not valid: spec.resources has 257 items; at most 256 are allowed; its objects',
      { SchemaInSync: 'Unknown' },
    ],
    [
      'a BoundSchema that is not valid',
      () => {
        const { spec } = boundSchemaManifest();
        stage.provider.put(boundSchemas, boundSchemaManifest({ spec: { ...(spec as object), versions: [] } }));
      },
      `Error BoundSchemaFetchFailed: BoundSchema ${crdName} in the provider's namespace kb-acme is not valid: spec.versions has 0 items`,
      { SchemaInSync: 'False' },
    ],
    [
      'a binding that is not valid',
      () => {
        stage.bind = () => stage.consumer.put(apiServiceBindings, bindingManifest({ spec: {} }));
      },
      'Error APIServiceBindingInvalid: APIServiceBinding kettles is not valid: spec.kubeconfigSecretRef is required; it binds nothing',
    ],
    [
      'a BoundSchema for another resource',
      () => {
        const { spec } = boundSchemaManifest();
        stage.provider.put(boundSchemas, boundSchemaManifest({ spec: { ...(spec as object), group: 'apps' } }));
      },
      `Error CustomResourceDefinitionCreateFailed: BoundSchema ${crdName} describes kettles.apps, but must have the name of the resource that it describes`,
      { SchemaInSync: 'False' },
    ],
    [
      'a CRD of another owner',
      () => stage.establish('uid-of-another'),
      `Error ForeignCustomResourceDefinition: CustomResourceDefinition ${crdName} exists`,
      { SchemaInSync: 'False' },
    ],
    [
      'a resource that is not allowed',
      () => stage.make(['pans.kitchen.example']),
      `Error ResourceNotAllowed: the provider exports ${crdName}`,
      { SchemaInSync: 'False' },
    ],
    [
      'a schema that the API server rejects',
      () => {
        stage.consumer.fault = refusing('create', new ApiError(422, 'Invalid', 'spec.validation: not structural'));
      },
      `Error CustomResourceDefinitionCreateFailed: the API server of this cluster rejects CustomResourceDefinition ${crdName}: spec.validation: not structural`,
      { SchemaInSync: 'False' },
    ],
    [
      'missing permissions for CRDs',
      () => {
        stage.consumer.fault = refusing('create', new ApiError(403, 'Forbidden', 'may not create'));
      },
      `Warning CustomResourceDefinitionNotWritten: CustomResourceDefinition ${crdName} could not be written: may not create`,
      { Connected: 'True', SchemaInSync: 'False' },
    ],
    [
      'a claim on a resource that cannot be claimed',
      () => stage.provider.put(apiServiceExports, claiming('secrets', 'pods')),
      'Warning InvalidPermissionClaim: the provider claims pods.core, which is not shared',
      { SchemaInSync: 'True' },
    ],
    [
      'a claimable annotation with a typing error, which accepts nothing',
      () => {
        const { bind } = stage;
        stage.bind = () => bind.call(stage, { annotations: { [claimableAnnotation]: 'secrets,configmap' } });
      },
      'Warning InvalidClaimableAnnotation: the annotation binding.drawbridge.dev/claimable names "configmap", so no claim',
      { SchemaInSync: 'True' },
    ],
    [
      'objects that are not in sync',
      () => {
        const problems = () => ['team-a/a: forbidden', ...Array.from({ length: 9 }, (_, i) => `o${i}: bad`)];
        stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', syncer: working({ problems }) });
      },
      'Warning ObjectsNotInSync: team-a/a: forbidden. o0: bad. o1: bad. o2: bad. o3: bad. and 5 more',
      { SchemaInSync: 'True' },
    ],
    [
      'kinds that a cluster no longer lets it watch, before the problems of objects',
      () => {
        const refusedWatches = (): RefusedWatch[] => [
          { side: 'provider', code: 403, resource: 'secrets' },
          { side: 'consumer', code: 401, resource: crdName },
          { side: 'provider', code: 403, resource: crdName },
        ];
        const syncer = working({ refusedWatches, problems: () => ['team-a/a: forbidden'] });
        stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', syncer });
      },
      'Warning WatchRefused: the provider no longer lets this cluster list and watch kettles.kitchen.example, secrets (403); ask the provider to grant these permissions to the user of the kubeconfig again. this cluster no longer lets the konnector list and watch kettles.kitchen.example, because it rejects the credentials of the konnector (401)',
      { SchemaInSync: 'True' },
    ],
  ];
  it('reports refused kinds of the provider at once, with one Event for each change, and their return at once', async () => {
    await stage.bound();
    const { session } = stage;
    stage.sessions.beat = { ok: false, message: 'unauthorized' };
    session.refused = [{ side: 'provider', code: 401, resource: 'apiserviceexports.kube-bind.io' }];
    for (let i = 0; i < 3; i++) await stage.look();
    assert.equal(stage.said()['Connected']?.reason, 'WatchRefused');
    const refused = stage.events.filter(({ reason }) => reason === 'WatchRefused');
    assert.equal(refused.length, 1);
    assert.match(refused[0]?.note ?? '', /rejects the credentials \(401\); ask the provider for a new kubeconfig/);
    session.refused = [...session.refused, { side: 'provider', code: 403, resource: 'boundschemas.kube-bind.io' }];
    for (let i = 0; i < 3; i++) await stage.look();
    const [, ofMore] = stage.events.filter(({ reason }) => reason === 'WatchRefused');
    assert.match(ofMore?.note ?? '', /boundschemas\.kube-bind\.io/);
    session.refused = [];
    stage.sessions.beat = { ok: true };
    await stage.look();
    assert.equal(stage.said()['Connected']?.status, 'True');
    assert.equal(stage.said()['Ready']?.status, 'True');
  });

  const refusing =
    (verb: Call['verb'], error: Error) =>
    (call: Call): void => {
      if (call.verb === verb && call.plural === 'customresourcedefinitions') throw error;
    };

  for (const [what, arrange, ready, also = {}] of lasting) {
    it(`reports ${what}, once`, async () => {
      stage.offer();
      arrange();
      stage.bind();
      for (let i = 0; i < 10; i++) {
        await stage.look();
        await stage.clock.advance(90_000);
      }
      const { Ready, ...others } = stage.said();
      const found = `${Ready?.severity} ${Ready?.reason}: ${Ready?.message}`;
      assert.equal(found.slice(0, ready.length), ready);
      for (const [type, status] of Object.entries(also)) assert.equal(others[type]?.status, status, type);
      const writes = stage.consumer.writes.filter((write) => write.startsWith('patch apiservicebindings/status'));
      assert.equal(writes.length, 1);
    });
  }

  const lists: [list: string | undefined, honoured: string[]][] = [
    [undefined, ['secrets', 'configmaps']],
    ['secrets', ['secrets']],
    [' configmaps , secrets,', ['secrets', 'configmaps']],
    ['', []],
  ];
  for (const [list, honoured] of lists) {
    it(`accepts ${honoured.join(' and ') || 'no'} claims if its annotation is ${JSON.stringify(list)}`, async () => {
      stage.bind(list === undefined ? {} : { annotations: { [claimableAnnotation]: list } });
      stage.offer();
      stage.provider.put(apiServiceExports, claiming('secrets', 'configmaps'));
      await stage.look();
      const { permissionClaims = [] } = statusOf(stage.binding()) as { permissionClaims?: { resource: string }[] };
      assert.deepEqual(pluck(permissionClaims, 'resource'), honoured);
      assert.equal(stage.said()['Connected']?.status, 'True');
    });
  }

  it('retries the read of a missing BoundSchema that failed', async () => {
    stage.bind();
    stage.provider.put(apiServiceExports, exportManifest());
    stage.provider.fault = ({ verb, plural }) => {
      if (verb === 'get' && plural === boundSchemas.plural)
        throw new ApiError(503, 'ServiceUnavailable', 'shutting down');
    };
    assert.equal((await stage.look()).kind, 'retry');
    assert.match(stage.said()['Connected']?.message ?? '', /kb-acme cannot be read: shutting down/);
    stage.provider.fault = () => {};
    assert.equal((await stage.look()).kind, 'done');
    assert.match(stage.said()['Connected']?.message ?? '', /has no BoundSchema of that name/);
  });

  it('keeps its conditions while an earlier kubeconfig serves, and its CRDs in any case', async () => {
    await stage.bound();
    const { session } = stage;
    stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad', lastGood: session };
    await stage.look();
    const { SecretValid, Connected, SchemaInSync } = stage.said();
    assert.deepEqual([SecretValid?.status, Connected?.status, SchemaInSync?.status], ['False', 'True', 'True']);
    stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad' };
    await stage.look();
    assert.deepEqual([stage.said()['Connected']?.status, stage.said()['Heartbeating']?.status], ['Unknown', 'Unknown']);
    assert.ok(stage.crd());
  });

  it('does not report a binding as ready before its provider is read, also after a restart', async () => {
    stage.session.state = { kind: 'connecting' };
    stage.bind();
    stage.offer();
    await stage.look();
    assert.deepEqual(stage.said()['Ready'], {
      status: 'False',
      severity: 'Info',
      reason: 'InformersSyncing',
      message: 'waiting for the lists of the provider',
    });
    assert.equal(stage.crd(), undefined);
    stage.session.state = { kind: 'connecting', problem: '401: Unauthorized' };
    await stage.look();
    assert.deepEqual([stage.said()['Ready']?.severity, stage.said()['Ready']?.reason], ['Warning', 'InformersSyncing']);
    assert.match(stage.said()['Ready']?.message ?? '', /the provider's objects could not be read: 401: Unauthorized;/);
    stage.session.state = { kind: 'synced' };
    await stage.look();
    stage.establish();
    await stage.serve();
    stage.session.state = { kind: 'connecting' };
    await stage.look();
    assert.deepEqual([stage.said()['Ready']?.severity, stage.said()['Ready']?.reason], ['Info', 'InformersSyncing']);
    assert.equal(stage.said()['Connected']?.status, 'True');
  });

  it('ignores the exports of other providers', async () => {
    await stage.bound();
    const other = new FakeSession(new BindingStage().provider);
    stage.sessions.answer = { kind: 'session', session: other };
    await stage.look();
    assert.equal(stage.said()['Connected']?.reason, 'APIServiceExportNotFound');
  });
});
