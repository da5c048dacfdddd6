import { type Clock, systemClock } from '../../src/kit/clock.ts';

/** Real time with a wall clock that can jump, as when an operator or NTP sets it. */
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

  /** Moves the wall clock by milliseconds. */
  jump(byMs: number): void {
    this.#offsetMs += byMs;
  }
}
