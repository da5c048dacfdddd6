import assert from 'node:assert/strict';
import { Controller, type ControllerOptions } from '../../../src/engine/controller.ts';
import {
  at,
  after as comeBackAfter,
  done,
  notReady,
  type Result,
  retry,
  retryConflict,
} from '../../../src/engine/result.ts';
import type { Emit, Source } from '../../../src/engine/source.ts';
import { noControllerMetrics } from '../../../src/observe/controller-metrics.ts';
import { type Log, noLog } from '../../../src/observe/log.ts';
import { pluck } from '../../support/pluck.ts';
import { WorkClock } from '../../support/work-clock.ts';

interface Call {
  readonly key: string;
  readonly atMs: number;
  readonly signal: AbortSignal;
  readonly answer: PromiseWithResolvers<Result>;
}

/** Stops what a test has set up, and its reconciles. */
const cleanUp: (() => Promise<unknown>)[] = [];

/** A controller with a source that the test emits from, and a reconciler whose results the test sets. */
function setUp(
  answer: ((key: string, turn: number) => Result | undefined) | undefined,
  options: Partial<ControllerOptions> = {},
) {
  const clock = new WorkClock();
  const synced = Promise.withResolvers<void>();
  const calls: Call[] = [];
  const metrics: string[] = [];
  let emit: Emit = () => assert.fail('the source was not started');
  const source: Source = {
    name: 'test',
    start: (given, signal) => {
      emit = given;
      signal.addEventListener('abort', () => synced.reject(new Error('stopped')));
      return synced.promise;
    },
  };
  const controller = new Controller({
    name: 'test',
    sources: [source],
    clock,
    log: noLog,
    random: () => 0.5,
    metrics: { ...noControllerMetrics, reconciled: (outcome) => metrics.push(outcome) },
    reconciler: {
      reconcile: (key, signal) => {
        const call = { key, atMs: clock.monotonic(), signal, answer: Promise.withResolvers<Result>() };
        calls.push(call);
        const result = answer?.(key, calls.length);
        if (result) call.answer.resolve(result);
        return call.answer.promise;
      },
    },
    ...options,
  });
  const stop = new AbortController();
  let isSynced = false;
  const run = controller.run(stop.signal, () => {
    isSynced = true;
  });
  cleanUp.push(() => {
    stop.abort();
    for (const call of calls) call.answer.resolve(done);
    return run;
  });
  return {
    clock,
    controller,
    calls,
    metrics,
    stop,
    run,
    synced,
    isSynced: () => isSynced,
    emit: (...args: Parameters<Emit>) => emit(...args),
    keys: () => calls.map(({ key }) => key),
  };
}

/** The same, with sources that have synced. */
function setUpSynced(...args: Parameters<typeof setUp>) {
  const t = setUp(...args);
  t.synced.resolve();
  return t;
}

describe('Controller', () => {
  afterEach(() => Promise.all(cleanUp.splice(0).map((end) => end())));

  it('reconciles no key before every source has synced, then the most urgent keys first', async () => {
    const t = setUp(() => done, { lanes: 2 });
    t.emit('a', 'listed');
    t.emit('b', 'listed', { lane: 0 });
    await t.clock.settle();
    assert.deepEqual(t.keys(), []);
    assert.equal(t.isSynced(), false);
    t.synced.resolve();
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['b', 'a']);
    assert.equal(t.isSynced(), true);
  });

  const busy = Object.assign(new Error('slow down'), { retryAfterMs: 4000 });
  const thrown = (): never => {
    throw new Error('thrown');
  };
  const outcomes: { title: string; first: () => Result; turns: number[]; metrics: string[] }[] = [
    { title: 'done', first: () => done, turns: [0], metrics: ['success'] },
    { title: 'notReady', first: () => notReady('pod'), turns: [0], metrics: ['success'] },
    { title: 'after', first: () => comeBackAfter(1500), turns: [0, 1500], metrics: ['requeue_after', 'success'] },
    { title: 'retry', first: () => retry(new Error('x')), turns: [0, 50], metrics: ['error', 'success'] },
    { title: 'retry with Retry-After', first: () => retry(busy), turns: [0, 4000], metrics: ['error', 'success'] },
    { title: 'an error that was thrown', first: () => thrown(), turns: [0, 50], metrics: ['error', 'success'] },
    { title: 'a conflict', first: () => retryConflict('x'), turns: [0, 50], metrics: ['requeue_after', 'success'] },
    { title: 'an invalid time', first: () => at(Number.NaN), turns: [0, 50], metrics: ['error', 'success'] },
  ];
  for (const { title, first, turns, metrics } of outcomes) {
    it(`requeues the key after ${title}`, async () => {
      const t = setUpSynced((_, turn) => (turn === 1 ? first() : done));
      t.emit('a', 'event');
      await t.clock.advance(60_000);
      assert.deepEqual(pluck(t.calls, 'atMs'), turns);
      assert.deepEqual(t.metrics, metrics);
    });
  }

  it('warns about a conflict only if it repeats', async () => {
    const lines: string[] = [];
    const line = (level: string) => (): void => void lines.push(level);
    const log: Log = { ...noLog, debug: line('debug'), warn: line('warn'), child: () => log };
    const t = setUpSynced((_, turn) => ([2, 5].includes(turn) ? done : retryConflict('conflict')), { log });
    t.emit('a', 'event');
    await t.clock.advance(1000);
    assert.deepEqual(lines, ['debug'], 'the conflict did not repeat');
    t.emit('a', 'event');
    await t.clock.advance(1000);
    assert.deepEqual(lines, ['debug', 'debug', 'warn']);
  });

  it('resets the backoff after a reconcile without an error', async () => {
    const t = setUpSynced((_, turn) => (turn === 3 || turn > 4 ? done : retry('not yet')));
    t.emit('a', 'event');
    await t.clock.advance(1000);
    t.emit('a', 'event');
    await t.clock.advance(1000);
    const turns = t.calls.map(({ atMs }) => atMs);
    assert.deepEqual(turns, [0, 50, 150, 1000, 1050]);
  });

  it('requeues the key at the requested wall-clock time and in the requested lane', async () => {
    const t = setUpSynced((_, turn) => (turn === 1 ? at(t.clock.now() + 1000, 0) : done), { lanes: 2 });
    t.emit('a', 'event');
    await t.clock.advance(500);
    t.emit('b', 'event', { atMs: t.clock.now() + 500 });
    await t.clock.advance(500);
    assert.deepEqual(t.keys(), ['a', 'a', 'b']);
  });

  it('never runs one key twice at a time, and runs it once more for events meanwhile', async () => {
    const t = setUpSynced(undefined);
    t.emit('a', 'event');
    await t.clock.settle();
    t.emit('a', 'event');
    t.emit('a', 'event');
    await t.clock.settle();
    assert.equal(t.calls.length, 1);
    t.calls[0]?.answer.resolve(done);
    await t.clock.settle();
    assert.equal(t.calls.length, 2);
    t.calls[1]?.answer.resolve(done);
    await t.clock.settle();
    assert.equal(t.calls.length, 2);
  });

  it('runs at most as many keys as it has workers, and reserves some workers for the more urgent lanes', async () => {
    const t = setUpSynced(undefined, { workers: 3, reservedForUrgentLanes: 1, lanes: 2 });
    for (const key of ['a', 'b', 'c']) t.emit(key, 'event');
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b']);
    for (const key of ['x', 'y']) t.emit(key, 'expiry', { lane: 0 });
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b', 'x']);
    t.calls[2]?.answer.resolve(done);
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b', 'x', 'y']);
    t.calls[0]?.answer.resolve(done);
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b', 'x', 'y', 'c']);
  });

  it('allows every lane except the lowest to use the reserved workers', async () => {
    const t = setUpSynced(undefined, { workers: 3, reservedForUrgentLanes: 2, lanes: 3 });
    for (const key of ['a', 'b']) t.emit(key, 'event');
    await t.clock.settle();
    t.emit('x', 'cleanup', { lane: 1 });
    t.emit('y', 'expiry', { lane: 0 });
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'y', 'x']);
  });

  it('aborts a reconcile of the least urgent lane whose key becomes urgent, without counting a failure', async () => {
    const t = setUpSynced(undefined, { lanes: 3, lane0Aborts: true });
    t.emit('a', 'event');
    t.emit('b', 'event');
    await t.clock.settle();
    t.emit('a', 'expiry', { lane: 0 });
    assert.deepEqual(
      t.calls.map(({ signal }) => signal.aborted),
      [true, false],
    );
    t.calls[0]?.answer.reject(new Error('aborted'));
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b', 'a']);
    assert.deepEqual(t.metrics, []);
    t.calls[2]?.answer.resolve(done);
    await t.clock.advance(60_000);
    assert.deepEqual(t.keys(), ['a', 'b', 'a']);
  });

  it('aborts no reconcile for a key that is not in lane 0 or not due yet, and no urgent reconcile', async () => {
    const t = setUpSynced(undefined, { lanes: 3, lane0Aborts: true });
    t.emit('same', 'event');
    t.emit('later', 'event');
    t.emit('urgent', 'cleanup', { lane: 1 });
    await t.clock.settle();
    t.emit('same', 'event');
    t.emit('later', 'expiry', { lane: 0, delayMs: 1000 });
    t.emit('same', 'cleanup', { lane: 1 });
    t.emit('urgent', 'expiry', { lane: 0 });
    const aborted = (): string[] => t.calls.filter(({ signal }) => signal.aborted).map(({ key }) => key);
    assert.deepEqual(aborted(), []);
    await t.clock.advance(1000);
    assert.deepEqual(aborted(), ['later']);
  });

  it('lets timers run during any number of immediate reconciles', async () => {
    const t = setUpSynced(() => done);
    await t.clock.settle();
    let before: number | undefined;
    for (let i = 0; i < 5_000; i++) t.emit(`key-${i}`, 'event');
    t.clock.schedule(0, () => {
      before = t.calls.length;
    });
    await t.clock.advance(1);
    assert.equal(t.calls.length, 5_000);
    assert.ok(before !== undefined && before < 1_000, `${before} turns came before a timer that was due`);
  });

  it('pauses for the rest of the process after five milliseconds of reconciles', async () => {
    const t = setUpSynced(() => {
      t.clock.work(1);
      return done;
    });
    await t.clock.settle();
    for (let i = 0; i < 12; i++) t.emit(`key-${i}`, 'event');
    const roundsAfter = new Map<number, number>();
    const round = (): void => {
      roundsAfter.set(t.calls.length, (roundsAfter.get(t.calls.length) ?? 0) + 1);
      if (t.calls.length < 12) t.clock.schedule(0, round);
    };
    await t.clock.settle();
    t.clock.schedule(0, round);
    await t.clock.advance(1);
    assert.deepEqual(Object.fromEntries(roundsAfter), { 5: 15, 10: 16, 12: 1 });
  });

  it('reconciles a lone key at once, whatever work came before', async () => {
    const t = setUpSynced(() => {
      t.clock.work(5);
      return done;
    });
    await t.clock.settle();
    for (const key of ['a', 'b', 'c']) {
      t.emit(key, 'event');
      await t.clock.settle();
      assert.equal(t.keys().at(-1), key);
      await t.clock.advance(1);
    }
  });

  it('aborts the current reconciles when it stops, waits for them, and starts no other', async () => {
    const t = setUpSynced(undefined, { workers: 1 });
    t.emit('a', 'event');
    t.emit('b', 'event');
    await t.clock.settle();
    t.stop.abort();
    assert.equal(t.calls[0]?.signal.aborted, true);
    let stopped = false;
    void t.run.then(() => {
      stopped = true;
    });
    await t.clock.settle();
    assert.equal(stopped, false);
    t.calls[0]?.answer.reject(new Error('aborted'));
    await t.run;
    await t.clock.advance(60_000);
    assert.deepEqual(t.keys(), ['a']);
    assert.deepEqual(t.metrics, []);
    assert.equal(t.clock.pendingTimers, 0);
  });

  it('resolves if it is stopped while its sources still sync', async () => {
    const t = setUp(() => done);
    t.stop.abort();
    await t.run;
    assert.equal(t.isSynced(), false);
  });

  it('rejects if a source cannot start, and stops the others', async () => {
    let stopped = false;
    const broken: Source = { name: 'broken', start: () => Promise.reject(new Error('no such kind')) };
    const fine: Source = {
      name: 'fine',
      start: async (_, signal) => signal.addEventListener('abort', () => (stopped = true)),
    };
    const t = setUp(() => done, { sources: [broken, fine] });
    await assert.rejects(t.run, /no such kind/);
    cleanUp.length = 0;
    assert.equal(stopped, true);
  });

  it('starts with an empty queue when it runs again', async () => {
    const t = setUpSynced((_, turn) => (turn === 1 ? comeBackAfter(1000) : done));
    t.emit('a', 'event');
    await t.clock.settle();
    t.stop.abort();
    await t.run;
    const again = new AbortController();
    const run = t.controller.run(again.signal);
    await t.clock.advance(5000);
    assert.deepEqual(t.keys(), ['a']);
    t.emit('b', 'event');
    await t.clock.settle();
    assert.deepEqual(t.keys(), ['a', 'b']);
    again.abort();
    await run;
  });
});
