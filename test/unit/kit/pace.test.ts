import assert from 'node:assert/strict';
import { pace } from '../../../src/kit/pace.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

/** On which every look takes a millisecond. */
class BusyClock extends SimulatedClock {
  #looks = 0;

  override monotonic(): number {
    this.#looks += 1;
    return super.monotonic() + this.#looks;
  }
}

describe('pace', () => {
  it('lets timers have their turn once work has gone on for five milliseconds', async () => {
    const clock = new BusyClock();
    const pause = pace(clock, new AbortController().signal);
    const order: string[] = [];
    clock.schedule(0, () => order.push('timer'));
    const work = (async () => {
      for (let piece = 1; piece <= 6; piece++) {
        await pause();
        order.push(`piece ${piece}`);
      }
    })();
    await clock.advance(1000);
    await work;
    assert.deepEqual(order.slice(0, 6), ['piece 1', 'piece 2', 'piece 3', 'piece 4', 'timer', 'piece 5']);
  });

  it('ends with the reason of the signal', async () => {
    const stop = new AbortController();
    const pause = pace(new SimulatedClock(), stop.signal);
    assert.equal(pause(), undefined);
    stop.abort(new Error('over'));
    assert.throws(() => pause(), /over/);
  });
});
