import type { Clock } from '../../kit/clock.ts';

interface FirstObservation {
  readonly monotonicMs: number;
  /** Until `untilMs`, at the first observation. */
  readonly remainingMs: number;
  /** As in `hasPassed`, epoch ms. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/**
 * A deadline passes by the wall clock, or by the monotonic clock since the first observation:
 * setting the wall clock forward ends access early, and setting it back extends nothing.
 */
export class RequestDeadlines {
  readonly #clock: Clock;
  readonly #observations = new Map<string, FirstObservation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Epoch ms. The rest never exceeds `untilMs - fromMs`, even if the wall clock is behind. */
  hasPassed(uid: string, fromMs: number, untilMs: number): boolean {
    return this.#clock.now() >= untilMs || this.#remainingMs(uid, fromMs, untilMs) <= 0;
  }

  /** Epoch ms: the deadline, or earlier if the monotonic clock reaches it first. */
  nextCheckMs(uid: string, fromMs: number, untilMs: number): number {
    return Math.min(untilMs, this.#clock.now() + Math.max(0, Math.ceil(this.#remainingMs(uid, fromMs, untilMs))));
  }

  #remainingMs(uid: string, fromMs: number, untilMs: number): number {
    const monotonicMs = this.#clock.monotonic();
    let first = this.#observations.get(uid);
    // From the creation, the start, or the end: a new `fromMs` is a new measurement.
    if (!first || first.fromMs !== fromMs) {
      first = { monotonicMs, remainingMs: Math.min(untilMs - this.#clock.now(), untilMs - fromMs), fromMs, untilMs };
      this.#observations.set(uid, first);
    } else if (first.untilMs !== untilMs) {
      // A decision, an extension, or an edit moved the deadline: adjust, and keep the measurement.
      first = { ...first, remainingMs: first.remainingMs + untilMs - first.untilMs, untilMs };
      this.#observations.set(uid, first);
    }
    return first.remainingMs - (monotonicMs - first.monotonicMs);
  }

  forget(uid: string): void {
    this.#observations.delete(uid);
  }
}
