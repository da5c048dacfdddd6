import type { Clock } from '../../kit/clock.ts';

/** When this process first observed a deadline, and how much time was left. */
interface FirstObservation {
  readonly monotonicMs: number;
  /** Time that remained until `untilMs` when this process first observed the request. */
  readonly remainingMs: number;
  /** As in `hasPassed`, epoch ms. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/**
 * Decides by two clocks whether a deadline of a request has passed: when the wall clock reaches it, or when the monotonic clock has advanced
 * by the time that remained at the first observation. So setting the wall clock forward ends access early, and setting it back extends
 * nothing that this process has observed. A new leader measures the remaining time again.
 */
export class RequestDeadlines {
  readonly #clock: Clock;
  readonly #observations = new Map<string, FirstObservation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Whether the deadline `untilMs` of the request with this uid has passed. `fromMs` is when the time until the deadline
   * begins to count; both are epoch ms. The remaining time never exceeds their difference, even if the wall clock is behind `fromMs`.
   */
  hasPassed(uid: string, fromMs: number, untilMs: number): boolean {
    return this.#clock.now() >= untilMs || this.#remainingMs(uid, fromMs, untilMs) <= 0;
  }

  /** When to call `hasPassed` next, epoch ms: at the deadline, or earlier if the monotonic clock reaches it first. */
  nextCheckMs(uid: string, fromMs: number, untilMs: number): number {
    return Math.min(untilMs, this.#clock.now() + Math.max(0, Math.ceil(this.#remainingMs(uid, fromMs, untilMs))));
  }

  #remainingMs(uid: string, fromMs: number, untilMs: number): number {
    const monotonicMs = this.#clock.monotonic();
    let first = this.#observations.get(uid);
    // The time counts from the creation of the request, from the start of its access, or from its end. When `fromMs` changes, a new
    // measurement begins.
    if (!first || first.fromMs !== fromMs) {
      first = { monotonicMs, remainingMs: Math.min(untilMs - this.#clock.now(), untilMs - fromMs), fromMs, untilMs };
      this.#observations.set(uid, first);
    } else if (first.untilMs !== untilMs) {
      // A decision, an extension, or an edit of the template moved the deadline: adjust the remaining time, and keep the measurement.
      first = { ...first, remainingMs: first.remainingMs + untilMs - first.untilMs, untilMs };
      this.#observations.set(uid, first);
    }
    return first.remainingMs - (monotonicMs - first.monotonicMs);
  }

  /** Discards the observation of the request with this uid. */
  forget(uid: string): void {
    this.#observations.delete(uid);
  }
}
