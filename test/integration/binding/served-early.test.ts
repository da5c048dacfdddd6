import assert from 'node:assert/strict';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import { consumerKinds } from '../../../src/api/binding/kinds.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { consumerCrd } from '../../../src/binding/consumer-crds.ts';
import { BindingStage } from '../../support/binding/stage.ts';

interface CrdEvent {
  readonly object: {
    readonly metadata: { readonly name: string };
    readonly status: { readonly conditions: { readonly type: string; status: string }[] };
  };
}

const delayMs = 12_000;
/** Less than the delay, with room for a busy machine. */
const withinMs = 8_000;

describe(`an API server that establishes a CustomResourceDefinition ${delayMs / 1000} s after it serves the kind`, () => {
  let stage: BindingStage;
  let proxy: FaultProxy;
  /** When the API server established each CRD, by name; milliseconds. */
  const establishedAtMs = new Map<string, number>();

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    proxy = await stage.side.consumer.plane.proxy({
      onWatchLine(line, { path }) {
        if (!path.includes('/customresourcedefinitions') || !line.includes('"Established"')) return [line];
        const event = JSON.parse(line) as CrdEvent;
        const established = event.object.status.conditions.find(({ type }) => type === 'Established');
        if (established?.status !== 'True') return [line];
        const { name } = event.object.metadata;
        const sinceMs = establishedAtMs.get(name) ?? performance.now();
        establishedAtMs.set(name, sinceMs);
        if (performance.now() - sinceMs < delayMs) established.status = 'False';
        return [JSON.stringify(event)];
      },
    });
  });
  after(async () => {
    await stage.close();
    await proxy.close();
  });

  it(`lets the konnector start within ${withinMs / 1000} s of serving its own kinds`, async function () {
    this.timeout(60_000);
    const { consumer } = stage.side;
    const konnector = await consumer.spawnVia(proxy.server);
    const installed = consumerKinds.map((kind) => consumerCrd(kind).metadata.name);
    await Promise.all(installed.map((crd) => whenServed(consumer.plane, crd)));
    const servedMs = performance.now();
    await konnector.whenReady();
    const tookMs = performance.now() - servedMs;
    console.log(`      ready after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs <= withinMs, `${tookMs} ms`);
  });

  it(`binds a kind within ${withinMs / 1000} s of its being served`, async function () {
    this.timeout(60_000);
    const { backend, consumer } = stage.side;
    const crd = stage.kinds.kettles.crd.metadata.name;
    await backend.export({ name: 'kitchen', kinds: [stage.kinds.kettles] });
    await consumer.bind('kitchen', await consumer.connect(backend.identity.kubeconfig));
    await whenServed(consumer.plane, crd);
    const servedMs = performance.now();
    await consumer.whenCondition('kitchen', 'Ready', 'True', { timeoutMs: withinMs });
    console.log(`      bound after ${Math.round(performance.now() - servedMs)} ms`);
    assert.ok(
      performance.now() - (establishedAtMs.get(crd) ?? 0) < delayMs,
      'the konnector has not seen it established',
    );
    const name = { namespace: stage.side.namespace, name: 'early' };
    await stage.create(stage.kinds.kettles, name);
    await stage.whenSynced(stage.kinds.kettles, name);
  });

  it('stays bound when the kind is established at last', async function () {
    this.timeout(60_000);
    const { consumer } = stage.side;
    const crd = stage.kinds.kettles.crd.metadata.name;
    const isDue = () => performance.now() - (establishedAtMs.get(crd) ?? 0) > delayMs;
    await until('the delay to pass', isDue, { timeoutMs: 2 * delayMs });
    await consumer.client.mergePatch(
      customResourceDefinitions,
      { name: crd },
      { metadata: { labels: { late: 'yes' } } },
    );
    const name = { namespace: stage.side.namespace, name: 'late' };
    await stage.create(stage.kinds.kettles, name);
    await stage.whenSynced(stage.kinds.kettles, name);
    await consumer.whenCondition('kitchen', 'Ready');
  });

  it('causes no warning', async () => {
    const lines = (await stage.side.consumer.konnector.log()).split('\n');
    assert.deepEqual(
      lines.filter((line) => / WARN /.test(line)),
      [],
    );
  });
});
