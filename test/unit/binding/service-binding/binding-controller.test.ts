import assert from 'node:assert/strict';
import { apiServiceExports, boundSchemas, clusterBindings } from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import { bindingController } from '../../../../src/binding/service-binding/binding-controller.ts';
import { conditionsOf, crdName, MemoryStage, statusOf } from '../../../support/binding/memory-stage.ts';
import { boundSchemaManifest, clusterBindingManifest, exportManifest } from '../../../support/binding/objects.ts';
import { working } from './binding-stage.ts';

/** The events that enqueue a binding, without calls of its reconciler. */
describe('the controller of bindings', () => {
  let stage: MemoryStage;
  let stop: AbortController;
  let run: Promise<void>;

  beforeEach(() => {
    stage = new MemoryStage();
    stop = new AbortController();
    const { sessions, deps, syncers } = stage;
    run = bindingController(sessions, deps, { syncers }).run(stop.signal);
  });

  afterEach(async () => {
    stop.abort();
    await run;
    assert.equal(stage.clock.pendingTimers, 0);
  });

  const said = (type: string) => conditionsOf(stage.binding())[type];

  const syncer = working({ served: () => true });
  const serve = () => stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', syncer });

  async function settle(ms = 1000): Promise<void> {
    for (let i = 0; i < 10; i++) await stage.clock.settle();
    await stage.clock.advance(ms);
    for (let i = 0; i < 10; i++) await stage.clock.settle();
  }

  it('enqueues the binding for its own events and those of the provider', async () => {
    await settle();
    stage.bind();
    await settle();
    assert.equal(said('Connected')?.reason, 'APIServiceExportNotFound');
    stage.provider.put(apiServiceExports, exportManifest());
    await settle();
    assert.equal(said('Connected')?.reason, 'BoundSchemaFetchFailed');
    stage.provider.put(boundSchemas, boundSchemaManifest());
    await settle();
    assert.equal(said('Ready')?.reason, 'InformersSyncing');
    serve();
    await settle();
    assert.equal(said('Ready')?.status, 'True');
    const spec = { ...(clusterBindingManifest().spec as object), providerPrettyName: 'Acme & Sons' };
    stage.provider.put(clusterBindings, clusterBindingManifest({ spec }));
    await settle();
    assert.deepEqual(Object(statusOf(stage.binding())).providerPrettyName, 'Acme & Sons');
  });

  it('enqueues the binding for events of its session, also of a later one', async () => {
    const { session } = stage;
    stage.sessions.answer = { kind: 'pending' };
    stage.bind();
    stage.offer();
    await settle();
    assert.deepEqual(conditionsOf(stage.binding()), {});
    stage.sessions.answer = { kind: 'session', session };
    stage.sessions.notify();
    serve();
    await settle();
    assert.equal(said('Ready')?.status, 'True');
    stage.sessions.beat = { ok: false, message: 'no' };
    stage.sessions.notify();
    await settle();
    assert.equal(said('Heartbeating')?.reason, 'ClusterBindingUpdateFailed');
    stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
    await settle();
    assert.equal(said('Connected')?.reason, 'APIServiceExportNotFound');
  });

  it('enqueues the binding as soon as its CRD changes', async () => {
    stage.bind();
    stage.offer();
    await settle();
    stage.consumer.drop(customResourceDefinitions, { name: crdName });
    await settle();
    assert.ok(stage.crd());
  });

  it('enqueues the binding once a foreign CRD is deleted', async () => {
    stage.establish('uid-of-another');
    stage.bind();
    stage.offer();
    await settle();
    assert.equal(said('Connected')?.reason, 'ForeignCustomResourceDefinition');
    stage.consumer.drop(customResourceDefinitions, { name: crdName });
    await settle();
    assert.equal(said('Connected')?.status, 'True');
  });

  it('reports problems of objects at most once a minute, and their end at once', async () => {
    stage.bind();
    stage.offer();
    await settle();
    let problems = ['team-a/blue: forbidden'];
    const failing = { ...syncer, problems: () => problems };
    stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'sync', syncer: failing });
    await settle(10_000);
    assert.equal(said('Connected')?.message, 'team-a/blue: forbidden');
    const before = stage.consumer.writes.length;
    for (let i = 0; i < 10; i++) {
      problems = [`team-a/blue: forbidden ${i}`];
      stage.syncers.notifyChanged('kettles');
      await settle(6000);
    }
    assert.ok(stage.consumer.writes.length - before <= 2, `${stage.consumer.writes.length - before} writes`);
    problems = [];
    stage.syncers.notifyChanged('kettles');
    await settle(6000);
    assert.equal(said('Connected')?.status, 'True');
  });
});
