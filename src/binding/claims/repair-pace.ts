import type { Clock } from '../../kit/clock.ts';

const firstMs = 500;
const capMs = 30_000;
/** A copy that was left alone for so long is no longer fought over. */
const calmMs = 10 * 60_000;

interface Repair {
  readonly wanted: string;
  readonly atMs: number;
  readonly times: number;
}

/** Slows down repairs of a copy that somebody else keeps changing, so that two programs that disagree do not race. */
export class RepairPace {
  readonly #repairs = new Map<string, Repair>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds to wait before `wanted` may be written to `key` again; 0 for what was not written there last. */
  delayMs(key: string, wanted: string): number {
    const last = this.#repairs.get(key);
    if (last?.wanted !== wanted || last.times < 2) return 0;
    const pauseMs = Math.min(capMs, firstMs * 2 ** (last.times - 2));
    return Math.max(0, last.atMs + pauseMs - this.#clock.monotonic());
  }

  wrote(key: string, wanted: string): void {
    const atMs = this.#clock.monotonic();
    const last = this.#repairs.get(key);
    const isAgain = last?.wanted === wanted && atMs - last.atMs < calmMs;
    this.#repairs.set(key, { wanted, atMs, times: isAgain ? last.times + 1 : 1 });
  }

  forget(key: string): void {
    this.#repairs.delete(key);
  }
}
