import assert from 'node:assert/strict';
import { pace, pause } from '../../../src/kit/pace.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { WorkClock } from '../../support/work-clock.ts';

/** Counts the rounds of the event loop in a pause; each takes `roundMs`. */
async function roundsOfPause(roundMs = 0): Promise<number> {
  const clock = new WorkClock();
  let rounds = 0;
  let isOver = false;
  const round = (): void => {
    if (isOver) return;
    rounds++;
    clock.work(roundMs);
    clock.schedule(0, round);
  };
  clock.schedule(0, round);
  const paused = pause(clock).then(() => {
    isOver = true;
  });
  await clock.advance(100);
  await paused;
  return rounds;
}

describe('pause', () => {
  it('lasts 16 rounds of the event loop, so that a port accepts that many connections', async () => {
    assert.equal(await roundsOfPause(), 16);
  });

  it('ends after 20 ms if other work makes the rounds long', async () => {
    assert.equal(await roundsOfPause(5), 4);
    assert.equal(await roundsOfPause(50), 1);
  });
});

describe('pace', () => {
  it('pauses once work has lasted five milliseconds', async () => {
    const clock = new WorkClock();
    const next = pace(clock, new AbortController().signal);
    const roundsBefore: number[] = [];
    let rounds = 0;
    const round = (): void => {
      rounds++;
      if (roundsBefore.length < 12) clock.schedule(0, round);
    };
    clock.schedule(0, round);
    const work = (async () => {
      for (let piece = 0; piece < 12; piece++) {
        await next();
        roundsBefore.push(rounds);
        clock.work(1);
      }
    })();
    await clock.advance(100);
    await work;
    assert.deepEqual(roundsBefore, [0, 0, 0, 0, 0, 16, 16, 16, 16, 16, 32, 32]);
  });

  it('ends with the reason of the signal', async () => {
    const stop = new AbortController();
    const next = pace(new SimulatedClock(), stop.signal);
    assert.equal(next(), undefined);
    stop.abort(new Error('over'));
    assert.throws(() => next(), /over/);
  });

  it('ends with the reason of a signal that aborts during a pause', async () => {
    const clock = new WorkClock();
    const stop = new AbortController();
    const next = pace(clock, stop.signal);
    clock.work(5);
    const paused = assert.rejects(async () => next(), /over/);
    stop.abort(new Error('over'));
    await clock.advance(1);
    await paused;
  });
});
