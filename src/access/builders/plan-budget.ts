import type { Clock } from '../../kit/clock.ts';
import { copyJson, type JsonCopy, maxWeight, valueWeight } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { pause, SLICE_MS } from '../../kit/pace.ts';
import type { Violation } from '../policy/policy.ts';

/**
 * Maximum work for one plan, in the unit of copyJson's weight. Planning a pod of 1.4 million characters, or of 43,000 values, takes as
 * much.
 */
const maxWork = maxWeight;
/**
 * Maximum work for one plan at admission. Planning a pod of 90,000 characters takes as much, about 15 ms. The bound is lower than
 * `maxWork`, because any client that reaches the webhook port can cause such plans.
 */
export const admissionWork = maxWork / 16;
/** Maximum time for one plan, milliseconds. Checked each time the plan has spent another sixteenth of `maxWork`. */
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
  readonly #work: number;
  #remaining: number;
  #nextClockCheck: number;

  /**
   * Without a clock, only the work is bounded, not the time. Omit the clock for a plan that was granted: it must succeed again on a busy
   * machine.
   */
  constructor(clock?: Pick<Clock, 'monotonic'>, work = maxWork) {
    this.#work = work;
    this.#remaining = work;
    this.#nextClockCheck = work - workPerClockCheck;
    this.#clock = clock;
    this.#startedMs = clock?.monotonic() ?? 0;
  }

  /**
   * Counts `work` units as done. Throws `PlanTooLarge` if they exceed the remaining work, or if a check of the clock finds the time limit
   * passed.
   */
  spend(work: number): void {
    this.#remaining -= work;
    if (this.#remaining < 0) throw this.#tooLarge();
    if (this.#remaining > this.#nextClockCheck) return;
    this.#nextClockCheck = this.#remaining - workPerClockCheck;
    const elapsedMs = this.#clock ? this.#clock.monotonic() - this.#startedMs : 0;
    if (elapsedMs > maxMs) throw this.#tooLarge();
  }

  /** Names both limits: which of them a plan exceeds first varies from run to run, and each new text costs a write of the template's status. */
  #tooLarge(): PlanTooLarge {
    return new PlanTooLarge(
      `more than ${this.#work} units of work (${unit})${this.#clock ? `, or more than ${maxMs} ms` : ''}`,
    );
  }

  /** Copies `value` with copyJson, and spends the weight of the copy. Throws `PlanTooLarge`; returns any other problem. */
  copy(value: unknown): JsonCopy {
    const copied = copyJson(value, this.#remaining);
    if ('value' in copied) this.spend(copied.weight);
    else if (copied.tooLarge) this.spend(this.#remaining + 1);
    return copied;
  }
}

const unit = `copying a character of the pod costs 1, and copying a value ${valueWeight}`;

class PlanTooLarge extends Error {}

/** Runs `plan`. Returns its result, or `PlanTooLarge` if it exceeds `work` (default: `maxWork`) or, with a `clock`, the time limit. */
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
 * Runs plans one at a time, and pauses after each plan that took more than 5 ms, so that in a burst of requests, other work runs between
 * plans, such as the end of grants.
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
