import { notPlanned } from '../access/policy/template-policy.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { FairQueue } from './fair-queue.ts';

/** Each takes up to 15 ms (`admissionWork`), and keeps its review, up to 4 MiB, in memory. */
export const maxWaitingPlans = 32;

/**
 * Runs the plans of the template webhooks, with equal shares for client addresses, and then for
 * their namespaces. Not for users: one who may create ServiceAccounts could act as many.
 */
export class AdmissionPlanQueue {
  readonly #queue: FairQueue;

  constructor(clock: Clock) {
    this.#queue = new FairQueue({ clock, maxWaiting: maxWaitingPlans });
  }

  /** Above `maxWaitingPlans`, drops the newest plan of the busiest address and namespace. */
  runnerFor(address: string, namespace: string) {
    return {
      /** Resolves to `notPlanned` if the queue drops the plan. */
      run: <Result>(plan: () => Result, signal: AbortSignal): Promise<Result | typeof notPlanned> =>
        this.#queue
          .run<Result | typeof notPlanned>(address, plan, { tenant: namespace, signal })
          .catch((error: unknown) => {
            if (error instanceof CodedError && error.code === 'Overloaded') return notPlanned;
            throw error;
          }),
    };
  }
}
