import assert from 'node:assert/strict';
import { type DeadlineSource, deadlines } from '../../../../src/engine/sources/deadlines.ts';
import { pluck } from '../../../support/pluck.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const HOUR = 3_600_000;

describe('deadlines', () => {
  let clock: SimulatedClock;
  let source: DeadlineSource;
  let stop: AbortController;
  let emitted: { key: string; lane: number | undefined; atMs: number }[];

  beforeEach(async () => {
    clock = new SimulatedClock(1_000_000);
    source = deadlines({ name: 'end', clock, lane: 0 });
    stop = new AbortController();
    emitted = [];
    await source.start(
      (key, _reason, options) => emitted.push({ key, lane: options?.lane, atMs: clock.now() }),
      stop.signal,
    );
  });
  afterEach(() => stop.abort());

  it('emits each key in its lane at its time, not earlier', async () => {
    const start = clock.now();
    source.set('b', start + 2000);
    source.set('a', start + 1500);
    await clock.advance(1499);
    assert.deepEqual(emitted, []);
    await clock.advance(501);
    assert.deepEqual(emitted, [
      { key: 'a', lane: 0, atMs: start + 1500 },
      { key: 'b', lane: 0, atMs: start + 2000 },
    ]);
  });

  it('emits a key once, and again only if it is set again', async () => {
    source.set('a', clock.now() + 1000);
    await clock.advance(HOUR);
    assert.equal(emitted.length, 1);
    source.set('a', clock.now());
    await clock.advance(0);
    assert.equal(emitted.length, 2);
  });

  it('replaces a deadline, earlier or later', async () => {
    source.set('later', clock.now() + 1000);
    source.set('later', clock.now() + 5000);
    source.set('earlier', clock.now() + 5000);
    source.set('earlier', clock.now() + 1000);
    await clock.advance(1000);
    assert.deepEqual(pluck(emitted, 'key'), ['earlier']);
    await clock.advance(4000);
    assert.deepEqual(pluck(emitted, 'key'), ['earlier', 'later']);
  });

  it('emits nothing for a deleted key', async () => {
    source.set('a', clock.now() + 1000);
    source.delete('a');
    await clock.advance(HOUR);
    assert.deepEqual(emitted, []);
  });

  it('notices within a second that the wall clock was set forward', async () => {
    source.set('a', clock.now() + HOUR);
    clock.setWall(clock.now() + 24 * HOUR);
    await clock.advance(1000);
    assert.equal(emitted.length, 1);
  });

  it('is not delayed by a wall clock that was set back', async () => {
    source.set('a', clock.now() + HOUR);
    clock.setWall(clock.now() - 24 * HOUR);
    await clock.advance(HOUR);
    assert.equal(emitted.length, 1);
  });

  it('emits nothing without a listener and continues with the next listener', async () => {
    stop.abort();
    source.set('a', clock.now() + 1000);
    await clock.advance(2000);
    assert.deepEqual(emitted, []);
    const again: string[] = [];
    const next = new AbortController();
    await source.start((key) => again.push(key), next.signal);
    await clock.advance(0);
    assert.deepEqual(again, ['a']);
    next.abort();
  });
});
