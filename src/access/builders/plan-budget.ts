import type { Clock } from '../../kit/clock.ts';
import { sleep } from '../../kit/clock.ts';
import { copyJson, type JsonCopy, maxWeight, valueWeight } from '../../kit/json-value.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import type { Violation } from '../policy/policy.ts';

/** What planning one grant may cost, in the weight of copyJson: a pod of 1.4 million characters or of 43,000 values uses it up. */
const maxWork = maxWeight;
/** How long it may take, milliseconds. */
const maxMs = 250;
/** Work between two looks at the time. A plan that costs less is never denied for the time that a busy machine took over it. */
const workPerClockCheck = maxWork / 16;

/**
 * The work that one plan may do. While it is planned nothing else is done, not even the end of other grants, so the work is counted
 * as it is done, and what does too much ends there. The same plan costs the same work everywhere; the time is a bound for slow
 * machines.
 */
export class PlanBudget {
  readonly #clock: Pick<Clock, 'monotonic'> | undefined;
  readonly #startedMs: number;
  #left = maxWork;
  #nextClockCheck = maxWork - workPerClockCheck;

  /** Without a clock only the work is bounded: what was decided once must come out the same on a machine that is busy. */
  constructor(clock?: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#startedMs = clock?.monotonic() ?? 0;
  }

  /** Throws `PlanTooLarge` when that is more than there is, or when the time is over. */
  spend(work: number): void {
    this.#left -= work;
    if (this.#left < 0) throw new PlanTooLarge(`more than ${maxWork} units of work (${unit})`);
    if (this.#left > this.#nextClockCheck) return;
    this.#nextClockCheck = this.#left - workPerClockCheck;
    const tookMs = this.#clock ? this.#clock.monotonic() - this.#startedMs : 0;
    if (tookMs > maxMs) throw new PlanTooLarge(`more than ${maxMs} ms`);
  }

  /** A copy, as copyJson makes it, that is paid for. */
  copy(value: unknown): JsonCopy {
    const copied = copyJson(value, this.#left);
    if ('value' in copied) this.spend(copied.weight);
    else if (copied.tooLarge) this.spend(this.#left + 1);
    return copied;
  }
}

const unit = `a character of the pod is 1, a value ${valueWeight}, each time that it is copied`;

class PlanTooLarge extends Error {}

/** The plan, or the refusal `PlanTooLarge` when it takes more work, or with a `clock` more time, than one grant may cost. */
export function withinBudget<Plan>(
  plan: (budget: PlanBudget) => Plan,
  clock?: Pick<Clock, 'monotonic'>,
): Plan | { readonly refusal: Violation } {
  try {
    return plan(new PlanBudget(clock));
  } catch (error) {
    if (!(error instanceof PlanTooLarge)) throw error;
    const message =
      `planning the access pod takes ${error.message}, which is the most that one grant may cost; ` +
      'make the pod template that it copies smaller, or the template’s podSpec or patchSpecOperations';
    return { refusal: { code: 'PlanTooLarge', message, field: 'spec', status: 422 } };
  }
}

/** After this long, milliseconds, others have their turn. */
const yieldAfterMs = 5;

/** Plans run one at a time, and between long ones everything else has a turn: however many come at once, no grant ends later. */
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
        if (this.#clock.monotonic() - startedMs > yieldAfterMs) await sleep(this.#clock, 0);
      }
    });
  }
}
