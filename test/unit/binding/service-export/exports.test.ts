import assert from 'node:assert/strict';
import {
  allowDeletesAnnotation,
  apiServiceBindings,
  apiServiceExports,
  boundSchemas,
  claimableAnnotation,
  resyncAnnotation,
  unbindPolicyAnnotation,
} from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import type { ClaimsOptions } from '../../../../src/binding/claims/open-claims.ts';
import { ExportController } from '../../../../src/binding/service-export/export-controller.ts';
import { ExportReconciler } from '../../../../src/binding/service-export/export-reconciler.ts';
import { ExportWriter } from '../../../../src/binding/service-export/export-writer.ts';
import { SyncerSet } from '../../../../src/binding/service-export/syncer-set.ts';
import type { SyncerOptions } from '../../../../src/binding/sync/open-syncer.ts';
import type { Syncer } from '../../../../src/binding/sync-engine/syncer.ts';
import { Controller } from '../../../../src/engine/controller.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import {
  conditionsOf,
  crdName,
  exportKey,
  FakeSession,
  MemoryStage,
  statusOf,
} from '../../../support/binding/memory-stage.ts';
import {
  bindingManifest,
  boundSchemaManifest,
  exportManifest,
  secretsClaim,
} from '../../../support/binding/objects.ts';
import { pluck } from '../../../support/pluck.ts';

const { signal } = new AbortController();

interface Opened {
  readonly what: string;
  readonly mode: string;
  resyncs: number;
  allowed: number;
  closed: boolean;
}

describe('the reconciler of exports', () => {
  let stage: MemoryStage;
  let reconciler: ExportReconciler;
  let opened: Opened[];
  let sharesProvider: ClaimsOptions['mayShareProvider'] | undefined;
  /** What `openSyncer` throws. */
  let broken: Error | undefined;

  beforeEach(() => {
    stage = new MemoryStage();
    opened = [];
    broken = undefined;
    const { deps, session, sessions, syncers } = stage;
    reconciler = new ExportReconciler({
      ...deps,
      ...options(),
      session,
      sessions,
      set: new SyncerSet({ runningControllers: deps.runningControllers, syncers }),
      writer: new ExportWriter(session, deps.clock),
    });
  });

  function options() {
    return {
      syncers: stage.syncers,
      openSyncer: ({ schema, mode }: SyncerOptions): Syncer => {
        if (broken) throw broken;
        return open(schema.name, mode);
      },
      openClaims: ({ exported, mode, mayShareProvider }: ClaimsOptions): Syncer => {
        sharesProvider = mayShareProvider;
        return open(
          exported.permissionClaims.map(({ resource }) => resource).join(),
          mode === 'sync' ? 'claims' : `claims ${mode}`,
        );
      },
    };
  }

  function open(what: string, mode: string): Syncer {
    const entry: Opened = { what, mode, resyncs: 0, allowed: 0, closed: false };
    opened.push(entry);
    const idle = { reconcile: () => Promise.reject(new Error('never runs')) };
    const controller = new Controller({
      ...stage.deps,
      name: what,
      sources: [],
      reconciler: idle,
      metrics: stage.deps.metrics.controller(what),
    });
    return {
      controllers: [controller],
      resync: () => void entry.resyncs++,
      allowDeletes: () => void entry.allowed++,
      served: () => true,
      remaining: () => 0,
      problems: () => [],
      refusedWatches: () => [],
      close() {
        assert.ok(!stage.running.has(controller), 'its controller has been removed before');
        entry.closed = true;
      },
    };
  }

  const look = (key = exportKey) => reconciler.reconcile(key, signal);
  const atWork = () => opened.filter(({ closed }) => !closed).map(({ what, mode }) => `${mode} ${what}`);
  const exported = () => stage.provider.find(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
  const schema = () => stage.provider.find(boundSchemas, { namespace: 'kb-acme', name: crdName });
  const inSync = { conditions: [{ type: 'SchemaInSync', status: 'True', lastTransitionTime: '2026-11-21T08:00:00Z' }] };

  function bind(metadata: object = {}, status: object = inSync): void {
    const { metadata: own, ...rest } = bindingManifest();
    stage.consumer.put(apiServiceBindings, { ...rest, metadata: { ...own, ...metadata }, status });
  }

  it('reports an export that is not valid to the provider, and does not sync it', async () => {
    await bound();
    stage.provider.put(apiServiceExports, exportManifest({ spec: { resources: [] } }));
    await look();
    assert.deepEqual(atWork(), []);
    const { Connected } = conditionsOf(exported());
    assert.deepEqual([Connected?.status, Connected?.reason], ['False', 'APIServiceExportInvalid']);
    assert.match(Connected?.message ?? '', /consumer cannot use APIServiceExport kettles: spec\.resources has 0 items/);
  });

  function arrange(): void {
    stage.offer();
    bind();
    stage.establish();
  }

  async function bound(): Promise<void> {
    arrange();
    await look();
  }

  it('starts a syncer once the kind is served, and reports that to the provider', async () => {
    stage.offer();
    bind();
    await look();
    assert.deepEqual(atWork(), []);
    stage.establish();
    await look();
    assert.deepEqual(atWork(), [`sync ${crdName}`]);
    assert.equal(stage.running.size, 1);
    assert.ok(stage.syncers.isSyncing('kettles', crdName));
    const types = ['Ready', 'Connected', 'ConsumerInSync'];
    assert.deepEqual(conditionsOf(exported()), Object.fromEntries(types.map((type) => [type, { status: 'True' }])));
    const { conditions, ...rest } = statusOf(schema());
    assert.deepEqual(rest, { acceptedNames: { plural: 'kettles', kind: 'Kettle' }, storedVersions: ['v1'] });
    assert.deepEqual(
      conditions?.map(({ type }) => type),
      ['Ready', 'Established', 'NamesAccepted'],
    );
    assert.equal(conditions?.[1]?.lastTransitionTime, '2026-11-21T08:00:00Z');
  });

  it('writes and restarts nothing without a change', async () => {
    await bound();
    const { writes } = stage.provider;
    assert.ok(stage.provider.calls.every(({ fieldManager }) => fieldManager === 'kube-bind.io'));
    for (let i = 0; i < 10; i++) {
      await stage.clock.advance(60_000);
      await look();
    }
    assert.deepEqual(stage.provider.writes, writes);
    assert.equal(opened.length, 1);
  });

  const changes: [what: string, change: () => void, expected: string[], restarts: boolean][] = [
    ['its binding is deleted', () => stage.consumer.drop(apiServiceBindings, { name: 'kettles' }), [], false],
    ['its schema is gone', () => stage.provider.drop(boundSchemas, { namespace: 'kb-acme', name: crdName }), [], false],
    [
      'the export is deleted',
      () => stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' }),
      [],
      false,
    ],
    ['the CRD is deleted', () => stage.consumer.drop(customResourceDefinitions, { name: crdName }), [], false],
    ['the CRD has another owner', () => stage.consumer.put(customResourceDefinitions, withoutOwner()), [], false],
    [
      'the binding serves another provider',
      () => {
        const other = new FakeSession(new MemoryStage().provider);
        other.clusterNamespaceUid = 'another';
        stage.sessions.answer = { kind: 'session', session: other };
      },
      [],
      false,
    ],
    ['the binding is deleted with policy Orphan', () => goes('Orphan'), [], false],
    ['the binding is deleted with policy Delete', () => goes('Delete'), [`drain ${crdName}`], true],
    ['the unbind policy is unknown', () => goes('keep'), [`sync ${crdName}`], false],
    ['another version is served', () => version({ name: 'v2', storage: false }), [`sync ${crdName}`], true],
    ['only the schema changes', () => version(undefined, { schema: { type: 'object' } }), [`sync ${crdName}`], false],
    [
      'the Secret of the binding is read again',
      () => {
        stage.sessions.answer = { kind: 'pending' };
      },
      [`sync ${crdName}`],
      false,
    ],
    [
      'the Secret is no longer valid and the session continues',
      () => {
        const { session: lastGood } = stage;
        stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad', lastGood };
      },
      [`sync ${crdName}`],
      false,
    ],
  ];
  for (const [what, change, expected, restarts] of changes) {
    it(`${restarts ? 'restarts' : expected.length > 0 ? 'keeps' : 'stops'} a syncer when ${what}`, async () => {
      await bound();
      change();
      await look();
      assert.deepEqual(atWork(), expected);
      assert.equal(opened.length, restarts ? 2 : 1);
      assert.equal(stage.running.size, expected.length);
      assert.equal(stage.syncers.isSyncing('kettles', crdName), expected.length > 0);
    });
  }
  const withoutOwner = () => {
    const crd = stage.crd();
    assert.ok(crd);
    return { ...crd, metadata: { ...crd.metadata, ownerReferences: [] } };
  };
  const goes = (policy: string) =>
    bind({
      annotations: { [unbindPolicyAnnotation]: policy },
      deletionTimestamp: '2026-11-21T09:00:00Z',
      finalizers: ['x'],
    });
  const version = (added: object | undefined, changed: object = {}): void => {
    const { spec } = boundSchemaManifest();
    const { versions, ...rest } = spec as { versions: object[] };
    const first = { ...versions[0], ...changed };
    const all = added ? [first, { ...first, ...added }] : [first];
    stage.provider.put(
      boundSchemas,
      boundSchemaManifest({ spec: { ...rest, versions: all }, status: schema()?.status }),
    );
  };

  it('continues to delete copies after the deletion of the CRD', async () => {
    await bound();
    goes('Delete');
    stage.consumer.drop(customResourceDefinitions, { name: crdName });
    await look();
    assert.deepEqual(atWork(), [`drain ${crdName}`]);
  });

  it('drains claims with the bound objects', async () => {
    await bound();
    goes('Delete');
    const going = stage.consumer.find(apiServiceBindings, { name: 'kettles' });
    assert.ok(going);
    stage.consumer.put(apiServiceBindings, { ...going, status: { permissionClaims: [secretsClaim] } });
    await look();
    assert.deepEqual(atWork(), [`drain ${crdName}`, 'claims drain secrets']);
    goes('Orphan');
    await look();
    assert.deepEqual(atWork(), []);
  });

  it('does not sync objects if the schema has another scope', async () => {
    await bound();
    assert.deepEqual(atWork(), [`sync ${crdName}`]);
    const there = schema();
    assert.ok(there);
    stage.provider.put(boundSchemas, { ...there, spec: { ...Object(there.spec), scope: 'Cluster' } });
    await look();
    assert.deepEqual(atWork(), []);
  });

  it('stops only the syncer of a deleted schema', async () => {
    stage.offer();
    const { spec } = exportManifest();
    const pans = { group: 'kitchen.example', resource: 'kettles-xl' };
    const resources = [...(spec as { resources: object[] }).resources, pans];
    stage.provider.put(apiServiceExports, exportManifest({ spec: { ...(spec as object), resources } }));
    const { metadata, spec: schemaSpec } = boundSchemaManifest();
    const name = 'kettles-xl.kitchen.example';
    const names = { plural: 'kettles-xl', kind: 'KettleXl' };
    stage.provider.put(
      boundSchemas,
      boundSchemaManifest({ metadata: { ...metadata, name, uid: 'xl' }, spec: { ...(schemaSpec as object), names } }),
    );
    bind();
    stage.establish();
    const crd = stage.crd();
    assert.ok(crd);
    stage.consumer.put(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, name, uid: 'xl-crd' } });
    await look();
    assert.deepEqual(atWork(), [`sync ${crdName}`, `sync ${name}`]);
    stage.provider.drop(boundSchemas, { namespace: 'kb-acme', name: crdName });
    await look();
    assert.deepEqual(atWork(), [`sync ${name}`]);
    assert.equal(opened.length, 2);
  });

  it('follows the references of claims in the version that is synced now', async () => {
    await bound();
    bind({}, { ...inSync, permissionClaims: [secretsClaim] });
    await look();
    version({ name: 'v1beta1', storage: false });
    await look();
    assert.equal(opened.filter(({ mode }) => mode === 'claims').length, 1, 'the version that is synced is the same');
    const { spec } = exportManifest() as unknown as { spec: { resources: object[] } };
    const resources = spec.resources.map((resource) => ({ ...resource, versions: [] }));
    stage.provider.put(apiServiceExports, exportManifest({ spec: { ...spec, resources } }));
    await look();
    const before = opened.length;
    version({ name: 'v2', storage: true }, { storage: false, served: false });
    await look();
    assert.deepEqual(pluck(opened.slice(before), 'mode'), ['sync', 'claims']);
  });

  it('treats bindings of the same or an unknown provider as sharing the claims', async () => {
    await bound();
    bind({}, { ...inSync, permissionClaims: [secretsClaim] });
    await look();
    const other = stage.deps.stores.bindings.get('kettles');
    assert.ok(other && sharesProvider);
    assert.equal(sharesProvider(other), true);
    const same = new FakeSession(stage.provider);
    stage.sessions.answer = { kind: 'session', session: same };
    assert.equal(sharesProvider(other), true);
    same.clusterNamespaceUid = 'another';
    assert.equal(sharesProvider(other), false);
    stage.sessions.answer = { kind: 'invalid', reason: 'KubeconfigSecretInvalid', message: 'bad' };
    assert.equal(sharesProvider(other), true);
  });

  it('stops claims that the binding no longer allows before its status changes', async () => {
    await bound();
    const status = { ...inSync, permissionClaims: [secretsClaim] };
    bind({}, status);
    await look();
    bind({ annotations: { [claimableAnnotation]: 'configmaps' } }, status);
    await look();
    assert.deepEqual(atWork(), [`sync ${crdName}`]);
  });

  it('allows held-back deletes when the annotation changes', async () => {
    bind({ annotations: { [allowDeletesAnnotation]: 'long ago' } });
    stage.offer();
    stage.establish();
    await look();
    await look();
    assert.equal(opened[0]?.allowed, 0);
    bind({ annotations: { [allowDeletesAnnotation]: 'now' } });
    await look();
    await look();
    assert.deepEqual([opened[0]?.allowed, opened[0]?.resyncs], [1, 0]);
  });

  it('resyncs all objects when the annotation changes', async () => {
    await bound();
    const ask = async (value: string): Promise<number | undefined> => {
      bind({ annotations: { [resyncAnnotation]: value } });
      await look();
      await look();
      return opened[0]?.resyncs;
    };
    assert.equal(await ask('1'), 1);
    assert.equal(await ask('2'), 2);
  });

  it('reports that no binding uses it', async () => {
    stage.offer();
    for (let i = 0; i < 5; i++) await look();
    const { Connected, ConsumerInSync } = conditionsOf(exported());
    assert.deepEqual([Connected?.reason, Connected?.severity], ['APIServiceBindingNotFound', 'Info']);
    assert.deepEqual([ConsumerInSync?.reason, ConsumerInSync?.severity], ['NA', 'Info']);
    assert.deepEqual(stage.provider.writes, ['patch apiserviceexports/status kb-acme/kettles']);
  });

  it('copies the condition of the binding about its schemas', async () => {
    await bound();
    const said = { status: 'False', severity: 'Warning', reason: 'Some', message: 'thing' };
    bind({}, { conditions: [{ type: 'SchemaInSync', lastTransitionTime: '2026-11-21T08:00:00Z', ...said }] });
    await look();
    assert.deepEqual(conditionsOf(exported())['ConsumerInSync'], said);
    bind({}, {});
    await look();
    assert.equal(conditionsOf(exported())['ConsumerInSync']?.reason, 'Unknown');
  });

  it('does not change conditions of the provider', async () => {
    const provider = { type: 'ProviderInSync', status: 'False', severity: 'Error', reason: 'BoundSchemaMissing' };
    stage.offer();
    const status = { conditions: [{ ...provider, lastTransitionTime: '2026-11-21T08:00:00Z' }] };
    stage.provider.put(apiServiceExports, exportManifest({ status }));
    bind();
    await look();
    const { ProviderInSync, Ready } = conditionsOf(exported());
    assert.deepEqual([ProviderInSync?.reason, Ready?.reason], ['BoundSchemaMissing', 'BoundSchemaMissing']);
  });

  it('reports nothing in the session of the earlier credentials', async () => {
    await bound();
    const { writes } = stage.provider;
    const renewed = new FakeSession(stage.provider);
    stage.sessions.answer = { kind: 'session', session: renewed };
    await look();
    assert.deepEqual(stage.provider.writes, writes);
    assert.deepEqual(atWork(), []);
  });

  it('writes nothing else to the provider if a write is forbidden', async () => {
    arrange();
    stage.provider.fault = ({ plural }) => {
      if (plural === 'boundschemas') throw new ApiError(403, 'Forbidden', 'no rights');
    };
    for (let i = 0; i < 3; i++) await assert.rejects(look(), /no rights/);
    assert.ok(!stage.provider.writes.some((write) => write.includes('apiserviceexports')));
    assert.deepEqual(atWork(), [`sync ${crdName}`]);
  });

  it('reports a BoundSchema whose status is rejected', async () => {
    arrange();
    stage.provider.fault = ({ plural }) => {
      if (plural === 'boundschemas') throw new ApiError(422, 'Invalid', 'status.acceptedNames: bad');
    };
    await look();
    const { Connected } = conditionsOf(exported());
    assert.deepEqual([Connected?.reason, Connected?.severity], ['BoundSchemasNotValid', 'Warning']);
  });

  it('accepts that the provider wins a race, and reconciles again', async () => {
    stage.offer();
    bind();
    stage.provider.fault = ({ plural, verb }) => {
      if (verb === 'patch' && plural === 'apiserviceexports') throw new ApiError(409, 'Conflict', 'modified');
    };
    assert.deepEqual(await look(), { kind: 'done' });
  });

  it('starts the other syncers if one cannot be opened, and retries that one', async () => {
    broken = new Error('no watch');
    stage.offer();
    bind({}, { ...inSync, permissionClaims: [secretsClaim] });
    stage.establish();
    await assert.rejects(look(), /no watch/);
    assert.deepEqual(atWork(), ['claims secrets']);
    broken = undefined;
    await look();
    assert.deepEqual(atWork(), ['claims secrets', `sync ${crdName}`]);
  });

  it('closes its syncers when its controller stops, and opens them again when it starts', async () => {
    const { deps, session, sessions } = stage;
    arrange();
    const controller = new ExportController(session, sessions, deps, options());
    for (const turn of [1, 2]) {
      const stop = new AbortController();
      const run = controller.run(stop.signal);
      await stage.clock.settle();
      await stage.clock.advance(100);
      assert.deepEqual([opened.length, atWork()], [turn, [`sync ${crdName}`]]);
      stop.abort();
      await run;
      assert.deepEqual(atWork(), []);
      assert.equal(stage.running.size, 0);
      assert.ok(!stage.syncers.isSyncing('kettles', crdName));
    }
  });
});
