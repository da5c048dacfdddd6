import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { registerChain, untilReady } from '../../support/inventory/chain.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { percentile } from '../../support/percentile.ts';

describe('an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('triggers by a change only the components that read it, within milliseconds', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    const other = await stage.component('other', () => ({ outcome: 'Done' }));
    await stage.entry('one', { components: { network: { config: {} } } });
    await stage.ready('one');
    const before = other.calls.length;
    const latencies: number[] = [];
    for (let i = 0; i < 20; i++) {
      const called = network.nextCall();
      await stage.patch('one', { spec: { components: { network: { config: { size: i } } } } });
      const acknowledged = performance.now();
      const call = await called;
      assert.deepEqual(call.request.run.reasons, ['ConfigChanged:/spec/components/network/config']);
      latencies.push(call.at - acknowledged);
      await stage.ready('one');
      // A key starts at most once in 200 ms; this measures a change of a key that may start.
      await until('the key to be free', () => performance.now() > call.at + 200, { timeoutMs: 30_000, everyMs: 10 });
    }
    console.log(
      `      config change → called: p50 ${percentile(latencies, 0.5).toFixed(1)} ms, max ${percentile(latencies, 1).toFixed(1)} ms`,
    );
    assert.ok(percentile(latencies, 0.5) < 250, `p50 is ${percentile(latencies, 0.5)} ms`);
    assert.equal(other.calls.length, before);
  });

  it('is Ready soon after its creation, by a chain of components, each of which runs as soon as its input arrives', async () => {
    await registerChain(stage, ['a', 'b', 'c', 'd', 'e'], 100);
    // The first entry waits for the proof of write authorization.
    await untilReady(stage, 'warm');
    const tookMs = await untilReady(stage, 'one');
    console.log(`      a chain of five, 100 ms each: ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < 3_000, `${tookMs} ms`);
    const { ref } = await stage.get('one');
    const record = (await stage.records()).find(({ entry, component }) => entry.uid === ref.uid && component === 'e');
    assert.ok((record?.seq ?? 99) <= 10);
  });

  it('keeps unknown fields', async () => {
    const config = { deep: { er: [1, { y: 'ä' }] }, 'with/slash': true };
    await stage.component('novel', () => ({ outcome: 'Done', outputs: { novel: { made: config } } }));
    await stage.entry('one', { cluster: { any: { thing: 1 } }, components: { novel: { config, more: 'field' } } });
    await stage.ready('one');
    const { content } = await stage.get('one');
    assert.deepEqual((content.spec as { cluster: unknown }).cluster, { any: { thing: 1 } });
    assert.deepEqual((content.spec as { components: unknown }).components, {
      novel: { enabled: true, config, more: 'field' },
    });
    assert.deepEqual(content.status.outputs['novel'], { made: config });
  });
});
