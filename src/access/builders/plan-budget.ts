import type { Clock } from '../../kit/clock.ts';
import { copyJson, type JsonCopy, maxWeight, valueWeight } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { pause, SLICE_MS } from '../../kit/pace.ts';
import type { Violation } from '../policy/policy.ts';

/** Most work for one plan, in the weight of copyJson: a pod of 1.4 million characters or of 43,000 values uses it up. */
const maxWork = maxWeight;
/** Most time for one plan, milliseconds. */
const maxMs = 250;
/** Work between two checks of the clock. A plan that costs less is never denied for its time, however busy the machine. */
const workPerClockCheck = maxWork / 16;

/**
 * Bounds the work of one plan. Planning is synchronous and blocks everything else, including the end of other grants. So planning counts
 * its work and stops once it exceeds the bound. The same plan costs the same work on every machine; the time limit protects slow ones.
 */
export class PlanBudget {
  readonly #clock: Pick<Clock, 'monotonic'> | undefined;
  readonly #startedMs: number;
  #left = maxWork;
  #nextClockCheck = maxWork - workPerClockCheck;

  /** Without a clock, only the work is bounded: a plan that was granted once must succeed again, even on a busy machine. */
  constructor(clock?: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedMs = clock?.monotonic() ?? 0;
  }

  /** Throws `PlanTooLarge` if `work` exceeds what is left, or if the time has passed. */
  spend(work: number): void {
    this.#left -= work;
    if (this.#left < 0) throw new PlanTooLarge(`more than ${maxWork} units of work (${unit})`);
    if (this.#left > this.#nextClockCheck) return;
    this.#nextClockCheck = this.#left - workPerClockCheck;
    const tookMs = this.#clock ? this.#clock.monotonic() - this.#startedMs : 0;
    if (tookMs > maxMs) throw new PlanTooLarge(`more than ${maxMs} ms`);
  }

  /** Copies by copyJson, and spends the weight of the copy. */
  copy(value: unknown): JsonCopy {
    const copied = copyJson(value, this.#left);
    if ('value' in copied) this.spend(copied.weight);
    else if (copied.tooLarge) this.spend(this.#left + 1);
    return copied;
  }
}

const unit = `each copy of a character of the pod costs 1, of a value ${valueWeight}`;

class PlanTooLarge extends Error {}

/** The plan, or the refusal `PlanTooLarge` if it exceeds the work limit or, with a `clock`, the time limit. */
export function withinBudget<Plan>(
  plan: (budget: PlanBudget) => Plan,
  clock?: Pick<Clock, 'monotonic'>,
): Plan | { readonly refusal: Violation } {
  try {
    return plan(new PlanBudget(clock));
  } catch (error) {
    if (!(error instanceof PlanTooLarge)) throw error;
    const message =
      `planning the access pod takes ${error.message}, which is the limit for one grant; ` +
      'shorten the pod template of the workload, or podSpec or patchSpecOperations of the access template';
    return { refusal: { code: 'PlanTooLarge', message, field: 'spec', status: 422 } };
  }
}

/** Runs plans one at a time and pauses after long ones, so that a burst of requests does not delay the end of grants. */
export class PlanQueue {
  readonly #clock: Clock;
  readonly #mutex = new KeyMutex();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  run<Planned>(plan: () => Planned): Promise<Planned> {
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
