import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { clusterNamespaceAnnotation, consumerUidAnnotation } from '../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';
import { Prometheus } from '../../support/prometheus.ts';

describe('the synced fields', () => {
  let stage: BindingStage;
  const name = () => ({ namespace: stage.side.namespace, name: 'evening' });
  const kind = () => stage.kinds.kettles;
  const changeCopy = (patch: object) => {
    const { client } = stage.provider;
    return client.mergePatch(kind().inProvider, stage.copyName(kind(), name()), patch);
  };
  const whenCopy = (matches: (copy: KubeObject) => boolean) => stage.whenCopy(kind(), name(), matches);

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ informerScope: 'Cluster' });
    await stage.side.consumer.start();
    await stage.bind('kitchen', [stage.kinds.kettles]);
    const { client } = stage.side.consumer;
    await client.create(kind().inConsumer, {
      apiVersion: `${kind().inConsumer.group}/v1`,
      kind: 'Kettle',
      metadata: { ...name(), labels: { shelf: 'top' }, annotations: { note: 'mine' } },
      spec: { heat: 100, note: 'first', tags: { a: '1', b: '2' }, secretRefs: [{ name: 'x' }, { name: 'y' }] },
      recipe: { tea: 'green', water: 'soft' },
    });
    await stage.whenSynced(kind(), name());
  });
  after(async () => stage.close());

  it('are all except metadata and status, from the object to its copy', async () => {
    const copy = await stage.copy(kind(), name());
    assert.deepEqual(copy?.['recipe'], { tea: 'green', water: 'soft' });
    assert.deepEqual(own(copy?.spec, 'tags'), { a: '1', b: '2' });
    assert.equal(copy?.metadata.labels?.['shelf'], 'top');
    assert.equal(copy?.metadata.annotations?.['note'], 'mine');
    assert.equal(copy?.metadata.finalizers, undefined);
  });

  it('are removed from the copy, also beside spec', async () => {
    await stage.side.consumer.client.mergePatch(kind().inConsumer, name(), {
      spec: { note: null, secretRefs: [{ name: 'y' }] },
      recipe: { water: null },
    });
    const copy = await whenCopy(({ spec }) => own(spec, 'note') === undefined);
    assert.deepEqual([own(copy.spec, 'secretRefs'), copy['recipe']], [[{ name: 'y' }], { tea: 'green' }]);
  });

  it('are repaired after a client changes the copy, including its annotations', async () => {
    await changeCopy({
      metadata: { annotations: { [consumerUidAnnotation]: null } },
      spec: { heat: 1, note: 'theirs' },
    });
    const copy = await whenCopy(
      ({ spec, metadata }) =>
        own(spec, 'heat') === 100 &&
        own(spec, 'note') === undefined &&
        metadata.annotations?.[consumerUidAnnotation] !== undefined,
    );
    assert.equal(copy.metadata.annotations?.[clusterNamespaceAnnotation], stage.side.backend.clusterNamespace);
  });

  it('are the whole status, including removals, from the copy to its object', async () => {
    await stage.report(kind(), name(), { result: 'hot', notes: ['a', 'b'] });
    await stage.whenObject(kind(), name(), ({ status }) => own(status, 'result') === 'hot');
    await stage.report(kind(), name(), { result: null, notes: ['b'] });
    const object = await stage.whenObject(kind(), name(), ({ status }) => own(status, 'result') === undefined);
    assert.deepEqual(object.status, { notes: ['b'] });
  });

  /** The sum of the series of a metric with these labels; undefined without any. */
  const value = async (name: string, labels: Record<string, string>): Promise<number | undefined> => {
    const answer = await fetch(`http://127.0.0.1:${stage.side.consumer.konnector.metricsPort}/metrics`);
    const wanted = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    const found = (await answer.text())
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && wanted.every((one) => line.includes(one)));
    return found.length === 0
      ? undefined
      : found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  };

  const binding = 'kitchen';
  const resource = (): string => kind().crd.metadata.name;
  const metrics: [name: string, labels: () => Record<string, string>, min: number, max: number][] = [
    ['drawbridge_binding_sync_up_seconds_count', () => ({ resource: resource() }), 1, 100],
    ['drawbridge_binding_watch_age_seconds', () => ({ resource: resource(), side: 'provider' }), 0, 60],
    ['drawbridge_binding_heartbeat_age_seconds', () => ({}), 0, 300],
    ['drawbridge_binding_objects', () => ({ binding, resource: resource(), side: 'provider' }), 1, 1],
    ['workqueue_adds_total', () => ({ controller: `sync/${binding}/${resource()}` }), 1, 1000],
  ];
  for (const [metric, labels, min, max] of metrics) {
    it(`are counted in the metric ${metric}`, async () => {
      const isSane = async (): Promise<boolean> => {
        const found = await value(metric, labels());
        return found !== undefined && found >= min && found <= max;
      };
      await until(`${metric} between ${min} and ${max}`, isSane, { timeoutMs: 30_000 }).catch(async (error: Error) => {
        assert.fail(`${error.message}; found ${await value(metric, labels())}`);
      });
    });
  }

  it('are shown by the board of binding', async () => {
    const prometheus = await Prometheus.start({
      'drawbridge-binding-metrics': stage.side.consumer.konnector.metricsPort,
    });
    try {
      await prometheus.showBoard('binding', ['drawbridge_binding_conflicts_total', 'drawbridge_watch_refusals_total']);
    } finally {
      await prometheus.stop();
    }
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
    assert.deepEqual(stage.providerRefusals(), []);
  });
});
