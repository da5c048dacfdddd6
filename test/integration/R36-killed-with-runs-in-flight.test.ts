import assert from 'node:assert/strict';
import { runId } from '../../src/inventory/key.ts';
import { InventoryStage } from '../support/inventory/stage.ts';

const entries = 40;
const components = ['a', 'b', 'c', 'd', 'e'];

describe('a mothership that is killed', function () {
  this.timeout(180_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  after(async () => stage?.close());

  it('leaves the inventory to be read and written, and what changed meanwhile is run when it is back', async () => {
    const network = await stage.component('network', () => ({ outcome: 'Done', outputs: { network: { up: true } } }));
    const { ref } = await stage.entry('one');
    await stage.ready('one');
    await stage.server.stop('SIGKILL');
    await stage.patch('one', { spec: { components: { network: { config: { size: 2 } } } } });
    await stage.entry('two');
    assert.deepEqual((await stage.get('one')).content.status.outputs, { network: { up: true } });
    const before = network.callsFor(ref.uid).length;
    await stage.server.begin();
    await stage.ready('one', 'two');
    assert.equal(network.callsFor(ref.uid).length, before + 1);
    await stage.clear();
  });

  it('with 200 runs in flight loses none, doubles none, and is consistent soon after', async () => {
    // Each has its own number of entries to work for at a time.
    const servers = await Promise.all(
      components.map((name) =>
        stage.component(name, () => ({ outcome: 'Done', outputs: { [name]: { done: true } } }), {
          maxConcurrent: entries,
          timeoutSeconds: 30,
        }),
      ),
    );
    for (const server of servers) server.delayMs = 20_000;
    const names = Array.from({ length: entries }, (_, i) => `e${i}`);
    await Promise.all(names.map((name) => stage.entry(name)));
    const calls = () => servers.flatMap((server) => server.calls);
    await stage.until('200 runs to be in flight', () => calls().length === entries * components.length);
    await stage.server.stop('SIGKILL');
    for (const server of servers) server.delayMs = 20;
    const began = performance.now();
    await stage.server.begin();
    await stage.ready(...names);
    const tookMs = performance.now() - began;
    console.log(`      from the restart until all 200 are Done: ${tookMs.toFixed(0)} ms`);
    assert.ok(tookMs < 60_000, `${tookMs} ms`);

    const ids = calls().map(({ request }) => request.run.id);
    assert.equal(new Set(ids).size, ids.length, 'no run is called twice');
    const records = await stage.records();
    assert.equal(records.length, entries * components.length);
    for (const { entry, component, seq, phase, credentialId, lastOutcome } of records) {
      assert.deepEqual([phase, credentialId, lastOutcome?.outcome], ['Idle', undefined, 'Done']);
      const id = runId({ entryUid: entry.uid, component }, seq);
      assert.ok(ids.includes(id), `${id} was called`);
    }
  });
});
