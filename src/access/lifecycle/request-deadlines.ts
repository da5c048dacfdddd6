import type { Clock } from '../../kit/clock.ts';

/**
 * Measures one request. Its deadlines pass by the wall clock, or by the monotonic clock since the
 * first observation: setting the wall clock forward ends access early, and back extends nothing.
 */
export class RequestDeadline {
  readonly #clock: Clock;
  /** From the creation, the start, or the end: a new `fromMs` is a new measurement. */
  #observed: { readonly fromMs: number; readonly startMs: number; readonly monotonicMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The later time of both clocks. All times are epoch ms. */
  nowMs(fromMs: number): number {
    return Math.max(this.#clock.now(), this.#monotonicNowMs(fromMs));
  }

  /** `untilMs`, or earlier if the monotonic clock reaches it first. */
  nextCheckMs(fromMs: number, untilMs: number): number {
    const remainingMs = untilMs - this.#monotonicNowMs(fromMs);
    return Math.min(untilMs, this.#clock.now() + Math.max(0, Math.ceil(remainingMs)));
  }

  /** Never before `fromMs`, even if the wall clock is behind at the first observation. */
  #monotonicNowMs(fromMs: number): number {
    const monotonicMs = this.#clock.monotonic();
    if (this.#observed?.fromMs !== fromMs)
      this.#observed = { fromMs, startMs: Math.max(this.#clock.now(), fromMs), monotonicMs };
    return this.#observed.startMs + monotonicMs - this.#observed.monotonicMs;
  }
}
