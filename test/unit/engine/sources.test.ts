import assert from 'node:assert/strict';
import type { Emit } from '../../../src/engine/source.ts';
import { hintSource } from '../../../src/engine/sources/hint.ts';
import { interval } from '../../../src/engine/sources/interval.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

function recorder() {
  const seen: unknown[] = [];
  const emit: Emit = (key, reason, options) => {
    seen.push([key, reason, ...(options?.lane === undefined ? [] : [options.lane])]);
  };
  return { seen, emit };
}

describe('interval', () => {
  it('emits at the start and then every interval, up to a tenth later, until it is stopped', async () => {
    const clock = new SimulatedClock();
    const rounds: number[] = [];
    const stop = new AbortController();
    const source = interval({
      name: 'resync',
      clock,
      everyMs: 1000,
      random: () => 0.5,
      keys: () => {
        rounds.push(clock.monotonic());
        return ['all'];
      },
    });
    const { seen, emit } = recorder();
    await source.start(emit, stop.signal);
    await clock.advance(3500);
    stop.abort();
    await clock.advance(10_000);
    assert.deepEqual(rounds, [0, 1050, 2100, 3150]);
    assert.deepEqual(seen[0], ['all', 'resync']);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe('hintSource', () => {
  it('passes hints on while a controller listens, and reports if none does', async () => {
    const source = hintSource('callback');
    const { seen, emit } = recorder();
    assert.equal(source.hint('a'), false);
    const stop = new AbortController();
    await source.start(emit, stop.signal);
    assert.equal(source.hint('b'), true);
    assert.equal(source.hint('c', 'finished', { lane: 0 }), true);
    stop.abort();
    assert.equal(source.hint('d'), false);
    assert.deepEqual(seen, [
      ['b', 'callback'],
      ['c', 'finished', 0],
    ]);
  });

  it('passes hints to the controller that started last', async () => {
    const source = hintSource('callback');
    const [first, second] = [recorder(), recorder()];
    const stopFirst = new AbortController();
    await source.start(first.emit, stopFirst.signal);
    await source.start(second.emit, new AbortController().signal);
    stopFirst.abort();
    assert.equal(source.hint('a'), true);
    assert.deepEqual([first.seen.length, second.seen.length], [0, 1]);
  });
});
