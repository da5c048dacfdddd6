import type { Cancel, Clock } from '../../src/kit/clock.ts';
import { TimerHeap } from './timer-heap.ts';

/** A clock that only tests advance. Timers run on its monotonic time, as on a real machine; the wall clock may jump. */
export class SimulatedClock implements Clock {
  #monotonic = 0;
  #wallOffset: number;
  readonly #timers = new TimerHeap();

  constructor(startMs: number = Date.UTC(2026, 10, 21, 9, 0, 0)) {
    this.#wallOffset = startMs;
  }

  now(): number {
    return this.#wallOffset + this.#monotonic;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    return this.#timers.add(this.#monotonic + Math.max(0, delayMs), callback);
  }

  /** The number of pending timers. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Advances both clocks by `ms`. Runs each due timer at its own instant, and lets promises settle before and after it. */
  async advance(ms: number): Promise<void> {
    const target = this.#monotonic + ms;
    await this.settle();
    for (let timer = this.#timers.take(target); timer; timer = this.#timers.take(target)) {
      this.#monotonic = Math.max(this.#monotonic, timer.at);
      timer.callback();
      await this.settle();
    }
    this.#monotonic = Math.max(this.#monotonic, target);
  }

  /** Advances both clocks by `ms` and runs no timer, as if the process stood still. Due timers run late, with the next `advance`. */
  stall(ms: number): void {
    this.#monotonic += ms;
  }

  /** Sets the wall clock only; timers and monotonic time do not change. */
  setWall(ms: number): void {
    this.#wallOffset = ms - this.#monotonic;
  }

  /** Lets every ready promise chain run to its end. */
  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}
