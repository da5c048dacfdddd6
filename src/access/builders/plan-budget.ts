import type { Clock } from '../../kit/clock.ts';
import { copyJson, type JsonCopy, maxWeight, valueWeight } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { pause, SLICE_MS } from '../../kit/pace.ts';
import type { Violation } from '../policy/policy.ts';

/** In the unit of copyJson's weight: a pod of 1.4 million characters, or of 43,000 values. */
const maxWork = maxWeight;
/** A pod of 90,000 characters, 15 ms. Any client of the webhook port can cause such a plan. */
export const admissionWork = maxWork / 16;
const maxMs = 250;
/** Work between two checks of the clock. A plan that costs less never meets the time limit. */
const workPerClockCheck = maxWork / 16;

/**
 * Bounds the work of one plan, which is synchronous and blocks all else, such as the end of grants.
 * A plan costs the same work on every machine; the time limit protects slow ones.
 */
export class PlanBudget {
  readonly #clock: Pick<Clock, 'monotonic'> | undefined;
  readonly #startedMs: number;
  readonly #work: number;
  #remaining: number;
  #nextClockCheck: number;

  /** Omit the clock for a plan that was granted: it must succeed again on a busy machine. */
  constructor(clock?: Pick<Clock, 'monotonic'>, work = maxWork) {
    this.#work = work;
    this.#remaining = work;
    this.#nextClockCheck = work - workPerClockCheck;
    this.#clock = clock;
    this.#startedMs = clock?.monotonic() ?? 0;
  }

  /** Throws `PlanTooLarge` if the work or the time limit is exceeded. */
  spend(work: number): void {
    this.#remaining -= work;
    if (this.#remaining < 0) throw this.#tooLarge();
    if (this.#remaining > this.#nextClockCheck) return;
    this.#nextClockCheck = this.#remaining - workPerClockCheck;
    const elapsedMs = this.#clock ? this.#clock.monotonic() - this.#startedMs : 0;
    if (elapsedMs > maxMs) throw this.#tooLarge();
  }

  /**
   * Names both limits, because which one comes first varies, and a new text costs a status write.
   */
  #tooLarge(): PlanTooLarge {
    return new PlanTooLarge(
      `more than ${this.#work} units of work (${unit})${this.#clock ? `, or more than ${maxMs} ms` : ''}`,
    );
  }

  /** Spends the weight of the copy. Throws `PlanTooLarge`; returns any other problem. */
  copy(value: unknown): JsonCopy {
    const copied = copyJson(value, this.#remaining);
    if ('value' in copied) this.spend(copied.weight);
    else if (copied.tooLarge) this.spend(this.#remaining + 1);
    return copied;
  }
}

const unit = `copying a character of the pod costs 1, and copying a value ${valueWeight}`;

class PlanTooLarge extends Error {}

/** Returns `PlanTooLarge` beyond `work` (default `maxWork`) or, with a `clock`, the time limit. */
export function withinBudget<Result>(
  plan: (budget: PlanBudget) => Result,
  clock?: Pick<Clock, 'monotonic'>,
  work?: number,
): Result | { readonly violation: Violation } {
  try {
    return plan(new PlanBudget(clock, work));
  } catch (error) {
    if (!(error instanceof PlanTooLarge)) throw error;
    const message =
      `planning the access pod takes ${error.message}: that is the limit for one grant; ` +
      'shorten the pod template of the workload, or podSpec or patchSpecOperations of the access template';
    return { violation: { code: 'PlanTooLarge', message, field: 'spec', status: 422 } };
  }
}

/**
 * One plan at a time, with a pause after one of more than 5 ms, so that in a burst of requests
 * other work runs, such as the end of grants.
 */
export class PlanQueue {
  readonly #clock: Clock;
  readonly #mutex = new KeyMutex();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  run<Result>(plan: () => Result): Promise<Result> {
    return this.#mutex.run('plan', async () => {
      const startedMs = this.#clock.monotonic();
      try {
        return plan();
      } finally {
        if (this.#clock.monotonic() - startedMs > SLICE_MS) await pause(this.#clock);
      }
    });
  }
}
