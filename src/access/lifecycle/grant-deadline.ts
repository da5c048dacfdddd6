import type { Clock } from '../../kit/clock.ts';

interface FirstObservation {
  readonly monotonicMs: number;
  /** Time left until `untilMs` when this process first saw the request. */
  readonly leftMs: number;
  readonly untilMs: number;
}

/**
 * Decides by two clocks whether a deadline has passed. The wall clock has reached it; or the time that was left when this process first
 * saw the grant has passed on the monotonic clock. A wall clock set forward ends grants early; one set back never extends them.
 */
export class GrantDeadlines {
  readonly #clock: Clock;
  readonly #observations = new Map<string, FirstObservation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * `uid` of the request; `fromMs` its creation and `untilMs` its deadline, epoch ms. The time left never exceeds their difference, even
   * if the wall clock is behind the creation.
   */
  hasPassed(uid: string, fromMs: number, untilMs: number): boolean {
    return this.#clock.now() >= untilMs || this.#leftMs(uid, fromMs, untilMs) <= 0;
  }

  /** The wall-clock instant (epoch ms) of the next check: the deadline, or sooner if the monotonic clock reaches it first. */
  nextCheckMs(uid: string, fromMs: number, untilMs: number): number {
    return Math.min(untilMs, this.#clock.now() + Math.max(0, Math.ceil(this.#leftMs(uid, fromMs, untilMs))));
  }

  #leftMs(uid: string, fromMs: number, untilMs: number): number {
    const monotonicMs = this.#clock.monotonic();
    let first = this.#observations.get(uid);
    if (!first) {
      first = { monotonicMs, leftMs: Math.min(untilMs - this.#clock.now(), untilMs - fromMs), untilMs };
      this.#observations.set(uid, first);
    } else if (first.untilMs !== untilMs) {
      // The decision replaced the provisional deadline: move the deadline, and keep the elapsed time.
      first = { ...first, leftMs: first.leftMs + untilMs - first.untilMs, untilMs };
      this.#observations.set(uid, first);
    }
    return first.leftMs - (monotonicMs - first.monotonicMs);
  }

  forget(uid: string): void {
    this.#observations.delete(uid);
  }
}
