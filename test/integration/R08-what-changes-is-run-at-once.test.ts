import assert from 'node:assert/strict';
import type { ReceivedCall, ScriptedComponent } from '../support/inventory/scripted-component.ts';
import { InventoryStage } from '../support/inventory/stage.ts';

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;

describe('what changes in an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  const nextCall = (component: ScriptedComponent): Promise<ReceivedCall> =>
    new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => reject(new Error('the component was not called within 30 s')), 30_000);
      const stop = component.onCall((call) => {
        stop();
        clearTimeout(giveUp);
        resolve(call);
      });
    });

  it('reaches the component that reads it within milliseconds, and no other', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    const other = await stage.component('other', () => ({ outcome: 'Done' }));
    await stage.entry('one', { components: { network: { config: {} } } });
    await stage.ready('one');
    const before = other.calls.length;
    const latencies: number[] = [];
    for (let i = 0; i < 20; i++) {
      const called = nextCall(network);
      await stage.patch('one', { spec: { components: { network: { config: { size: i } } } } });
      const acknowledged = performance.now();
      const call = await called;
      assert.deepEqual(call.request.run.reasons, ['ConfigChanged:/spec/components/network/config']);
      latencies.push(call.at - acknowledged);
      await stage.ready('one');
      await new Promise((resolve) => setTimeout(resolve, 220));
    }
    console.log(
      `      config change → called: p50 ${quantile(latencies, 0.5).toFixed(1)} ms, max ${quantile(latencies, 1).toFixed(1)} ms`,
    );
    assert.ok(quantile(latencies, 0.5) < 250, `p50 is ${quantile(latencies, 0.5)} ms`);
    assert.equal(other.calls.length, before);
  });

  it('is consolidated while the component runs, and the last state counts', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    network.delayMs = 200;
    const { ref } = await stage.entry('one');
    await stage.ready('one');
    const before = network.calls.length;
    const began = performance.now();
    for (let i = 0; i < 300; i++)
      await stage.patch('one', { spec: { components: { network: { config: { size: i } } } } });
    const tookS = (performance.now() - began) / 1000;
    await stage.until('the last size to be Done', async () => {
      const [record] = await stage.records();
      return record?.phase === 'Idle' && (await stage.isReady('one'));
    });
    const runs = network.callsFor(ref.uid).length - before;
    console.log(`      300 writes over ${tookS.toFixed(2)} s: ${runs} runs`);
    assert.ok(runs <= 2 + tookS / 0.2 + 1, `${runs} runs in ${tookS} s`);
  });

  it('causes no run when nobody reads it, though it is written a thousand times', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done' }));
    await stage.entry('one');
    await stage.ready('one');
    const before = network.calls.length;
    // One after the other: writes of one object hold each other up.
    for (let i = 0; i < 1000; i++) await stage.patch('one', { spec: { cluster: { field: i } } });
    const called = nextCall(network);
    await stage.patch('one', { spec: { components: { network: { config: { last: true } } } } });
    await called;
    assert.equal(network.calls.length, before + 1);
  });

  it('goes from component to component in a chain, each as soon as its input is there', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const [index, name] of [...names.entries()].reverse()) {
      const input = names[index - 1];
      const component = await stage.component(
        name,
        async ({ entry }) => {
          if (input === undefined) return { outcome: 'Done', outputs: { [name]: { value: 1 } } };
          const { items } = await stage.cluster.client.list(
            {
              group: 'inventory.drawbridge.dev',
              version: 'v1alpha1',
              plural: 'clusterinventories',
              kind: 'ClusterInventory',
              namespaced: true,
            },
            { namespace: stage.namespace },
          );
          const found = items.find(({ metadata }) => metadata.uid === entry.id);
          const outputs = ((found?.status ?? {}) as { outputs?: Record<string, unknown> }).outputs ?? {};
          if (outputs[input] === undefined) {
            return { outcome: 'NotReady', missing: [{ path: `/status/outputs/${input}/value`, want: 'present' }] };
          }
          return { outcome: 'Done', outputs: { [name]: { value: 1 } } };
        },
        input === undefined ? {} : { reads: [`/status/outputs/${input}/value`] },
      );
      component.delayMs = 100;
    }
    // The first entry of all waits for the proof that writes are fenced.
    await stage.entry('warm');
    await stage.ready('warm');
    const began = performance.now();
    const { ref } = await stage.entry('one');
    await stage.ready('one');
    const tookMs = performance.now() - began;
    console.log(`      a chain of five, 100 ms each: ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < 15_000, `${tookMs} ms`);
    const record = (await stage.records()).find(({ entry, component }) => entry.uid === ref.uid && component === 'e');
    assert.ok((record?.seq ?? 99) <= 10);
  });
});
