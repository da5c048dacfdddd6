import { type Clock, systemClock } from '../../src/kit/clock.ts';

/** Real time, except that the wall clock can be made to jump, as when an operator or NTP sets it. */
export class OffsetClock implements Clock {
  #offsetMs = 0;

  now(): number {
    return systemClock.now() + this.#offsetMs;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  schedule(delayMs: number, callback: () => void): () => void {
    return systemClock.schedule(delayMs, callback);
  }

  /** Moves the wall clock, by milliseconds, from where it is now. */
  jump(byMs: number): void {
    this.#offsetMs += byMs;
  }
}
