import assert from 'node:assert/strict';
import { configMaps } from '../../../../src/api/resources.ts';
import { Outbox, settledAfterMs } from '../../../../src/notify/outbox/outbox.ts';
import { nextWriteMs, OutboxStore } from '../../../../src/notify/outbox/outbox-store.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { MemoryCluster } from '../../../support/binding/memory-cluster.ts';
import { deliveryOf, factOf } from '../../../support/notify/facts.ts';
import { applying } from '../../../support/notify/replica.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const namespace = 'drawbridge-system';
const { signal } = new AbortController();

class Stage {
  readonly clock = new SimulatedClock();
  readonly api = new MemoryCluster(this.clock);
  readonly nowMs = this.clock.now();

  store(): OutboxStore {
    const client = { ...this.api.client, apply: applying(this.api) };
    return new OutboxStore({ client, namespace, clock: this.clock, log: noLog });
  }

  /** A store that has read the stored outbox, and that outbox. */
  async open() {
    const store = this.store();
    const { isFirst, ...state } = await store.load(signal);
    return { store, isFirst, state, outbox: new Outbox(state, this.nowMs, () => 0.5) };
  }

  offer(outbox: Outbox, name: string, reason = ''): void {
    const fact = factOf({ name, reason, atMs: this.nowMs });
    assert.ok(outbox.offer(deliveryOf(fact, { provider: { key: `${name}/x`, uid: name, type: 'Teams' } }), this.nowMs));
  }

  get writes(): string[] {
    return this.api.calls.filter(({ verb }) => verb === 'patch').map(({ name }) => name.replace(/^.*outbox-/, ''));
  }

  put(shard: number, state: string): void {
    const metadata = { namespace, name: `drawbridge-notify-outbox-${shard}` };
    this.api.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { state } });
  }
}

describe('the stored outbox', () => {
  it('begins with the second of the first start', async () => {
    const stage = new Stage();
    const { isFirst, state } = await stage.open();
    assert.deepEqual([isFirst, state.floorMs], [true, stage.nowMs - 1]);
  });

  it('is the same in the next process', async () => {
    const stage = new Stage();
    const { store, outbox } = await stage.open();
    for (const name of ['a', 'b']) stage.offer(outbox, name);
    const [first] = outbox.pendingOf('a');
    assert.ok(first);
    outbox.settle([first], { delivered: true, said: 'ok', ref: 'ts-1' }, stage.nowMs);
    await store.write(outbox.stateAt(stage.nowMs), signal);
    const { isFirst, state } = await stage.open();
    assert.equal(isFirst, false);
    assert.deepEqual([...state.told.keys()], [first.id]);
    assert.deepEqual([...state.refs.values()], [{ ref: 'ts-1', atMs: stage.nowMs }]);
    assert.deepEqual(
      state.pending.map(({ fact }) => fact),
      outbox.pending.map(({ fact }) => fact),
    );
  });

  it('writes only the shards that changed', async () => {
    const stage = new Stage();
    const { store, outbox } = await stage.open();
    stage.offer(outbox, 'a');
    await store.write(outbox.stateAt(0), signal);
    assert.deepEqual(stage.writes, ['1', '0']);
    await store.write(outbox.stateAt(0), signal);
    assert.equal(stage.writes.length, 2);
    stage.offer(outbox, 'b');
    await store.write(outbox.stateAt(0), signal);
    assert.deepEqual(stage.writes.slice(2), ['1']);
  });

  it('keeps each ConfigMap at 512 KiB when it is full', async () => {
    const stage = new Stage();
    const { store, outbox } = await stage.open();
    const full = (i: number) =>
      deliveryOf(factOf({ name: `r${i}`, reason: 'ü'.repeat(i % 9_000) }), {
        provider: { key: `${i % 3}/x`, uid: `${i % 3}-${i % 7}`, type: 'Teams' },
      });
    let offered = 0;
    for (let i = 0; i < 5_000; i++) if (outbox.offer(full(i), stage.nowMs)) offered += 1;
    await store.write(outbox.stateAt(stage.nowMs), signal);
    for (const { metadata, data } of stage.api.list(configMaps)) {
      const bytes = Buffer.byteLength((data as { state: string }).state);
      assert.ok(bytes <= 512 * 1024, `${metadata.name}: ${bytes}`);
    }
    assert.equal((await stage.open()).state.pending.length, offered);
  });

  it('replaces a shard that cannot be read, and keeps the others', async () => {
    const stage = new Stage();
    const { store, outbox } = await stage.open();
    stage.offer(outbox, 'a');
    await store.write(outbox.stateAt(stage.nowMs), signal);
    for (const text of ['{', '[]', '{"floorMs":"x"}', '']) {
      stage.put(0, text);
      stage.put(2, '[{"id":1},null,7]');
      const { isFirst, state, store: next, outbox: present } = await stage.open();
      assert.deepEqual([isFirst, state.floorMs, state.pending.length], [false, stage.nowMs - settledAfterMs, 1], text);
      await next.write(present.stateAt(stage.nowMs), signal);
    }
  });

  it('does not overwrite a later leader, but replaces a late write of an earlier one', async () => {
    const stage = new Stage();
    const earlier = await stage.open();
    await earlier.store.write(earlier.outbox.stateAt(0), signal);
    const { store, outbox } = await stage.open();
    stage.offer(outbox, 'a');
    stage.put(0, '{"floorMs":1}');
    await assert.rejects(store.write(outbox.stateAt(stage.nowMs + settledAfterMs), signal), /modified/);
    await store.write(outbox.stateAt(stage.nowMs + settledAfterMs), signal);
    assert.equal((await stage.open()).state.floorMs, stage.nowMs);
  });
});

describe('the next write', () => {
  const rows: readonly [string, Parameters<typeof nextWriteMs>[0], number, number | undefined][] = [
    ['never without a change', { unstoredSinceMs: undefined, hasNews: false }, 0, undefined],
    ['two seconds after what waits was offered', { unstoredSinceMs: 10_000, hasNews: true }, 0, 12_000],
    ['a second after the last write', { unstoredSinceMs: 10_000, hasNews: false }, 11_500, 12_500],
    ['a minute after it, once something was told', { unstoredSinceMs: undefined, hasNews: true }, 9_000, 69_000],
  ];
  for (const [what, outbox, lastWriteMs, expected] of rows) {
    it(`is ${what}`, () => assert.equal(nextWriteMs(outbox, lastWriteMs), expected));
  }
});
