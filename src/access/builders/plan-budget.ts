import type { Clock } from '../../kit/clock.ts';
import { copyJson, type JsonCopy, maxWeight, valueWeight } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { pause, SLICE_MS } from '../../kit/pace.ts';
import type { Violation } from '../policy/policy.ts';

/** Maximum work for one plan, in the unit of copyJson's weight: that of a pod with 1.4 million characters, or with 43,000 values. */
const maxWork = maxWeight;
/** Maximum time for one plan, milliseconds; checked only after every 16th of the maximum work. */
const maxMs = 250;
/** Work between two checks of the clock. The time limit never applies to a plan that costs less. */
const workPerClockCheck = maxWork / 16;

/**
 * Bounds the work of one plan. Planning is synchronous and blocks everything else, including the end of other grants. So it counts its work
 * and stops at the bound. The same plan costs the same work on every machine; the time limit protects slow machines.
 */
export class PlanBudget {
  readonly #clock: Pick<Clock, 'monotonic'> | undefined;
  readonly #startedMs: number;
  #remaining = maxWork;
  #nextClockCheck = maxWork - workPerClockCheck;

  /** Without a clock, only the work is bounded. Omit it for a plan that was granted, which must succeed again on a busy machine. */
  constructor(clock?: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedMs = clock?.monotonic() ?? 0;
  }

  /** Throws `PlanTooLarge` if `work` exceeds the remaining work, or, at a check of the clock, if the time has passed. */
  spend(work: number): void {
    this.#remaining -= work;
    if (this.#remaining < 0) throw new PlanTooLarge(`more than ${maxWork} units of work (${unit})`);
    if (this.#remaining > this.#nextClockCheck) return;
    this.#nextClockCheck = this.#remaining - workPerClockCheck;
    const elapsedMs = this.#clock ? this.#clock.monotonic() - this.#startedMs : 0;
    if (elapsedMs > maxMs) throw new PlanTooLarge(`more than ${maxMs} ms`);
  }

  /** Copies `value` with copyJson, and spends the weight of the copy. Throws `PlanTooLarge`; returns any other problem. */
  copy(value: unknown): JsonCopy {
    const copied = copyJson(value, this.#remaining);
    if ('value' in copied) this.spend(copied.weight);
    else if (copied.tooLarge) this.spend(this.#remaining + 1);
    return copied;
  }
}

const unit = `each copy of a character of the pod costs 1, of a value ${valueWeight}`;

class PlanTooLarge extends Error {}

/** Runs `plan`. Returns its result, or `PlanTooLarge` if it exceeds the work limit or, with a `clock`, the time limit. */
export function withinBudget<Result>(
  plan: (budget: PlanBudget) => Result,
  clock?: Pick<Clock, 'monotonic'>,
): Result | { readonly violation: Violation } {
  try {
    return plan(new PlanBudget(clock));
  } catch (error) {
    if (!(error instanceof PlanTooLarge)) throw error;
    const message =
      `planning the access pod takes ${error.message}, which is the limit for one grant; ` +
      'shorten the pod template of the workload, or podSpec or patchSpecOperations of the access template';
    return { violation: { code: 'PlanTooLarge', message, field: 'spec', status: 422 } };
  }
}

/** Runs plans one at a time, and pauses after each of more than 5 ms. So a burst of requests does not delay the end of grants. */
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
