import type { Clock } from '../../kit/clock.ts';

interface FirstObservation {
  readonly monotonicMs: number;
  /** Time the request had left when this process first saw it, for the deadline `untilMs`. */
  readonly leftMs: number;
  readonly untilMs: number;
}

/**
 * Decides whether a grant is over, by two clocks: the wall clock has reached the deadline, or as much monotonic time has passed since
 * this process first saw the grant as it had left then. So a wall clock that jumps ahead ends grants, one set back never extends them.
 */
export class GrantDeadlines {
  readonly #clock: Clock;
  readonly #observations = new Map<string, FirstObservation>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `uid` of the request; `fromMs` its creation and `untilMs` its deadline, epoch ms: nothing ever has more left than their difference. */
  hasPassed(uid: string, fromMs: number, untilMs: number): boolean {
    return this.#clock.now() >= untilMs || this.#leftMs(uid, fromMs, untilMs) <= 0;
  }

  /** The wall-clock instant (epoch ms) at which to look again: the deadline, or sooner when monotonic time ends it first. */
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
      // The decision replaced the provisional deadline: move it, keep the time that has passed.
      first = { ...first, leftMs: first.leftMs + untilMs - first.untilMs, untilMs };
      this.#observations.set(uid, first);
    }
    return first.leftMs - (monotonicMs - first.monotonicMs);
  }

  forget(uid: string): void {
    this.#observations.delete(uid);
  }
}
