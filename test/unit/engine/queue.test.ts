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

  it('waits for a delay whatever the wall clock does', async () => {
    const { clock, queue } = setUp();
    queue.add('a', 'later', { delayMs: HOUR });
    clock.setWall(clock.now() + 24 * HOUR);
    await clock.advance(HOUR - 1);
    assert.equal(queue.take(), undefined);
    await clock.advance(1);
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
    const metrics = {
      ...noControllerMetrics,
      depth: (keys: number) => seen.push(`depth ${keys}`),
      added: () => seen.push('added'),
      waited: (seconds: number) => seen.push(`waited ${seconds}`),
      retried: () => seen.push('retried'),
    };
    const queue = new KeyedQueue(clock, () => {}, { random: () => 0.5 }, metrics);
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
