import type { Cancel, Clock } from '../../src/kit/clock.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that moves only when told to. Timers run on its monotonic time, as they do on a real machine; the wall may jump. */
export class SimulatedClock implements Clock {
  #monotonic = 0;
  #wallOffset: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

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
    this.#order += 1;
    const timer: Timer = { at: this.#monotonic + Math.max(0, delayMs), order: this.#order, callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that are armed now. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves both clocks by `ms`, running each due timer at its own instant and letting promises settle before and after it. */
  async advance(ms: number): Promise<void> {
    const target = this.#monotonic + ms;
    await this.settle();
    for (let timer = this.#nextUntil(target); timer; timer = this.#nextUntil(target)) {
      this.#timers.delete(timer);
      this.#monotonic = Math.max(this.#monotonic, timer.at);
      timer.callback();
      await this.settle();
    }
    this.#monotonic = Math.max(this.#monotonic, target);
  }

  /** Sets the wall clock and nothing else: timers and monotonic time do not notice. */
  setWall(ms: number): void {
    this.#wallOffset = ms - this.#monotonic;
  }

  /** Lets every promise chain that is ready run to its end. */
  settle(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  #nextUntil(target: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at > target) continue;
      if (!next || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer;
    }
    return next;
  }
}
