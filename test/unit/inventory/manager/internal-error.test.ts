import assert from 'node:assert/strict';
import { keyText } from '../../../../src/inventory/key.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';
import type { MemoryInventory } from '../../../support/inventory/memory-stores.ts';

type Stage = Awaited<ReturnType<typeof memoryStage>>;

const poison = (): never => {
  throw new TypeError('of this entry nothing can be made');
};

/** Each fault makes one operation throw for entry `bad` until the returned function is called. */
const faults: Readonly<Record<string, (stage: Stage, uid: string) => () => void>> = {
  'issuing its token': ({ manager }, uid) => {
    manager.issuing = ({ ref }) => ref.uid === uid && poison();
    return () => {
      manager.issuing = () => {};
    };
  },
  'reading the entry': ({ manager: { stores } }, uid) => {
    const { entries } = stores;
    const find = entries.find.bind(entries);
    entries.find = (wanted) => {
      const entry = find(wanted);
      if (wanted !== uid || !entry) return entry;
      return Object.defineProperty({ ...entry }, 'disabled', { get: poison });
    };
    return () => {
      entries.find = find;
    };
  },
  'storing its start': ({ manager: { stores } }, uid) => {
    const { runs } = stores;
    const swap = runs.swap.bind(runs);
    runs.swap = (next, ...rest) => (next.entry.uid === uid ? Promise.resolve().then(poison) : swap(next, ...rest));
    return () => {
      runs.swap = swap;
    };
  },
  'storing its outcome': ({ manager: { stores } }, uid) => {
    const { runs } = stores;
    const swap = runs.swap.bind(runs);
    runs.swap = (next, ...rest) =>
      next.entry.uid === uid && next.phase !== 'Running' ? Promise.resolve().then(poison) : swap(next, ...rest);
    return () => {
      runs.swap = swap;
    };
  },
};

const rowOf = (inventory: MemoryInventory, name: string) => inventory.entry({ name })?.components[0];

describe('an exception in the handling of one key', () => {
  for (const [what, begin] of Object.entries(faults)) {
    it(`in ${what}: shows in its status, stops no other key, is retried with backoff, and recovers`, async () => {
      const stage = await memoryStage([{ name: 'network', intervalSeconds: 86_400 }], {
        network: () => done({ network: { vnet: 'v' } }),
      });
      const { clock, inventory } = stage;
      const bad = inventory.create({ name: 'bad' });
      const end = begin(stage, bad.ref.uid);
      for (let i = 0; i < 40; i++) inventory.create({ name: `e${i}` });
      await clock.advance(120_000);
      for (let i = 0; i < 40; i++) assert.equal(rowOf(inventory, `e${i}`)?.state, 'Done');
      const row = rowOf(inventory, 'bad');
      assert.deepEqual(
        [row?.state, row?.reason, row?.message],
        [
          'Failed',
          'InternalError',
          'the server failed to handle the component: of this entry nothing can be made; the server retries; see its log',
        ],
      );
      const tries = stage.manager.errors.filter(
        ([, { key }]) => key === keyText({ entryUid: bad.ref.uid, component: 'network' }),
      );
      assert.ok(tries.length >= 5 && tries.length <= 20, `${tries.length} tries in two minutes`);
      end();
      await clock.advance(31_000);
      assert.equal(rowOf(inventory, 'bad')?.state, 'Done');
      assert.deepEqual(inventory.entry({ name: 'bad' })?.content.status.outputs, { network: { vnet: 'v' } });
    });
  }

  it('keeps no slot of its component during the backoff', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', maxConcurrent: 1 }]);
    manager.issuing = ({ ref }) => ref.name === 'bad' && poison();
    inventory.create({ name: 'bad' });
    await clock.advance(60_000);
    inventory.create({ name: 'good' });
    await clock.advance(300);
    assert.equal(rowOf(inventory, 'good')?.state, 'Done');
  });

  it('is retried with backoff even if a run ends meanwhile', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', intervalSeconds: 86_400 }], {
      network: ({ run }) => (run.seq === 1 ? { kind: 'accepted', heartbeatTimeoutMs: 20_000 } : done()),
    });
    const { ref } = inventory.create({ name: 'bad' });
    await clock.advance(2_000);
    const { entries } = manager.stores;
    const find = entries.find.bind(entries);
    let looks = 0;
    entries.find = (uid) => {
      const entry = find(uid);
      if (uid !== ref.uid || !entry) return entry;
      const get = (): never => {
        looks += 1;
        // Ends a hot loop.
        if (looks > 1_000) entries.find = find;
        return poison();
      };
      return Object.defineProperty({ ...entry }, 'content', { get });
    };
    await clock.advance(120_000);
    assert.ok(looks >= 5 && looks <= 60, `${looks} looks in two minutes`);
    entries.find = find;
    await clock.advance(31_000);
    assert.equal(rowOf(inventory, 'bad')?.state, 'Done');
  });

  it('loses no remote event during the backoff', async () => {
    const stage = await memoryStage([{ name: 'network', intervalSeconds: 86_400 }]);
    const { clock, inventory, manager } = stage;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    assert.equal(manager.calls.length, 1);
    const end = faults['reading the entry']?.(stage, ref.uid);
    manager.remote.event({ entryUid: ref.uid, component: 'network', detail: 'managed/things' });
    await clock.advance(10_000);
    assert.equal(manager.calls.length, 1);
    end?.();
    await clock.advance(31_000);
    assert.equal(manager.calls.length, 2);
    assert.equal(rowOf(inventory, 'one')?.state, 'Done');
  });
});
