import { SimulatedClock } from './simulated-clock.ts';

/** A clock that synchronous work can advance. */
export class WorkClock extends SimulatedClock {
  #workedMs = 0;

  work(ms: number): void {
    this.#workedMs += ms;
  }

  override monotonic(): number {
    return super.monotonic() + this.#workedMs;
  }
}
