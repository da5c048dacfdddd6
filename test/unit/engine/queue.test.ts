import assert from 'node:assert/strict';
import { KeyedQueue, type QueueOptions } from '../../../src/engine/queue.ts';
import { noControllerMetrics } from '../../../src/observe/controller-metrics.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const HOUR = 3_600_000;

function setUp(options: QueueOptions = {}) {
  const clock = new SimulatedClock();
  let calls = 0;
  const queue = new KeyedQueue(clock, () => calls++, { random: () => 1 - Number.EPSILON, ...options });
  const takeAll = (): string[] => {
    const keys: string[] = [];
    for (let work = queue.take(); work; work = queue.take()) keys.push(work.key);
    return keys;
  };
  return { clock, queue, takeAll, readyCalls: () => calls };
}

describe('KeyedQueue', () => {
  it('returns keys in the order in which they became due', () => {
    const { queue, takeAll } = setUp();
    for (const key of ['b', 'a', 'c', 'a', 'b']) queue.add(key, 'event');
    assert.deepEqual(takeAll(), ['b', 'a', 'c']);
  });

  it('merges the reasons of one key without duplicates, up to a limit', () => {
    const { queue } = setUp();
    for (const reason of ['x', 'y', 'x']) queue.add('a', reason);
    assert.deepEqual(queue.take()?.reasons, ['x', 'y']);
    for (let i = 0; i < 100; i++) queue.add('b', `reason ${i}`);
    assert.equal(queue.take()?.reasons.length, 8);
  });

  it('returns a key once more if it was added while it ran', () => {
    const { queue } = setUp();
    queue.add('a', 'first');
    queue.take();
    queue.add('a', 'second');
    queue.add('a', 'third');
    assert.equal(queue.take(), undefined);
    queue.done('a');
    assert.deepEqual(queue.take(), { key: 'a', lane: 0, reasons: ['second', 'third'] });
    queue.done('a');
    assert.equal(queue.take(), undefined);
  });

  it('returns keys of lane 0 first, and adds to the least urgent lane by default', () => {
    const { queue, takeAll } = setUp({ lanes: 3 });
    queue.add('low', 'r');
    queue.add('middle', 'r', { lane: 1 });
    queue.add('top', 'r', { lane: 0 });
    queue.add('beyond', 'r', { lane: 9 });
    assert.deepEqual(takeAll(), ['top', 'middle', 'low', 'beyond']);
  });

  it('moves a waiting key up to the most urgent requested lane, never down', () => {
    const { queue, takeAll } = setUp({ lanes: 2 });
    queue.add('a', 'r');
    queue.add('b', 'r');
    queue.add('b', 'r', { lane: 0 });
    queue.add('b', 'r', { lane: 1 });
    assert.deepEqual(takeAll(), ['b', 'a']);
  });

  it('returns keys of the top lanes only on request', () => {
    const { queue } = setUp({ lanes: 2 });
    queue.add('low', 'r');
    assert.equal(queue.take(0), undefined);
    queue.add('top', 'r', { lane: 0 });
    assert.equal(queue.take(0)?.key, 'top');
  });

  it('keeps the earliest of several times; an add without a time is due now', async () => {
    const { clock, queue } = setUp();
    const now = clock.now();
    queue.add('a', 'late', { atMs: now + 5000 });
    queue.add('a', 'early', { atMs: now + 2000 });
    queue.add('a', 'later', { atMs: now + 9000 });
    await clock.advance(1999);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.equal(queue.take()?.key, 'a');
    queue.done('a');
    queue.add('a', 'late', { atMs: clock.now() + 5000 });
    queue.add('a', 'now');
    assert.deepEqual(queue.take()?.reasons, ['late', 'now']);
    queue.done('a');
    await clock.advance(HOUR);
    assert.equal(queue.take(), undefined);
  });

  it('waits for a delay whatever the wall clock does', async () => {
    const { clock, queue } = setUp();
    queue.add('a', 'later', { delayMs: HOUR });
    clock.setWall(clock.now() + 24 * HOUR);
    await clock.advance(HOUR - 1);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
    assert.equal(queue.take()?.key, 'a');
  });

  it('keeps a deadline that was set while the key ran', async () => {
    const { clock, queue } = setUp();
    queue.add('a', 'event');
    queue.take();
    queue.add('a', 'at', { atMs: clock.now() + 1000 });
    queue.done('a');
    assert.equal(queue.take(), undefined);
    await clock.advance(1000);
    assert.equal(queue.take()?.key, 'a');
  });

  it('signals a ready key at the exact millisecond of a deadline a day later', async () => {
    const { clock, queue, readyCalls } = setUp();
    queue.add('a', 'expiry', { atMs: clock.now() + 24 * HOUR });
    await clock.advance(24 * HOUR - 1);
    assert.equal(readyCalls(), 0);
    await clock.advance(1);
    assert.equal(readyCalls(), 1);
  });

  it('arms one timer for any number of deadlines, and none without', async () => {
    const { clock, queue } = setUp();
    for (let i = 100; i > 0; i--) queue.add(`k${i}`, 'r', { atMs: clock.now() + i * 10 });
    assert.equal(clock.pendingTimers, 1);
    await clock.advance(2000);
    assert.equal(queue.depth, 100);
    assert.equal(clock.pendingTimers, 0);
  });

  for (const jumpMs of [-24 * HOUR, -HOUR, -1]) {
    it(`waits no longer than planned when the wall clock is set back by ${-jumpMs} ms`, async () => {
      const { clock, queue } = setUp();
      queue.add('a', 'expiry', { atMs: clock.now() + 10_000 });
      await clock.advance(4000);
      clock.setWall(clock.now() + jumpMs);
      await clock.advance(5999);
      assert.equal(queue.take(), undefined);
      await clock.advance(1);
      assert.equal(queue.take()?.key, 'a');
    });
  }

  for (const jumpMs of [HOUR, 24 * HOUR]) {
    it(`is due within a second when the wall clock jumps ${jumpMs} ms past the deadline`, async () => {
      const { clock, queue } = setUp();
      queue.add('a', 'expiry', { atMs: clock.now() + HOUR });
      await clock.advance(60_500);
      clock.setWall(clock.now() + jumpMs);
      await clock.advance(1000);
      assert.equal(queue.take()?.key, 'a');
    });
  }

  it('keeps a key that is not admitted waiting until wake', () => {
    const open = new Set(['b']);
    const { queue, takeAll } = setUp({ admit: (key) => open.has(key) });
    for (const key of ['a', 'b', 'c']) queue.add(key, 'event');
    assert.deepEqual(takeAll(), ['b']);
    open.add('a').add('c');
    assert.deepEqual(takeAll(), []);
    assert.equal(queue.depth, 2);
    queue.readmit();
    assert.deepEqual(takeAll(), ['a', 'c']);
  });

  it('doubles the delay with every failure up to the cap, and resets it after success', async () => {
    const { queue } = setUp({ random: () => 0.5, backoff: { baseMs: 100, capMs: 1000 } });
    const delays = [0, 1, 2, 3, 4, 5].map(() => queue.retry('a', 'retry'));
    assert.deepEqual(delays, [50, 100, 200, 400, 500, 500]);
    queue.forget('a');
    assert.equal(queue.retry('a', 'retry'), 50);
    assert.equal(queue.retry('b', 'retry', 0, 7000), 7000);
  });

  it('counts depth, adds, waits, and retries', async () => {
    const clock = new SimulatedClock();
    const seen: string[] = [];
    const queue = new KeyedQueue(
      clock,
      () => {},
      { random: () => 0.5 },
      {
        ...noControllerMetrics,
        depth: (keys) => seen.push(`depth ${keys}`),
        added: () => seen.push('added'),
        waited: (seconds) => seen.push(`waited ${seconds}`),
        retried: () => seen.push('retried'),
      },
    );
    queue.add('a', 'event');
    await clock.advance(250);
    queue.take();
    queue.retry('a', 'retry');
    assert.deepEqual(seen, ['added', 'depth 1', 'depth 0', 'waited 0.25', 'retried', 'added']);
  });

  it('accepts and returns nothing once closed', async () => {
    const { clock, queue, takeAll } = setUp();
    queue.add('a', 'event');
    queue.add('b', 'event', { atMs: clock.now() + 10 });
    queue.close();
    assert.deepEqual([queue.depth, queue.delayed], [0, 0]);
    queue.add('c', 'event');
    await clock.advance(1000);
    assert.deepEqual(takeAll(), []);
    assert.equal(clock.pendingTimers, 0);
  });
});
