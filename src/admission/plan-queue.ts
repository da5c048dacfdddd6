import { notPlanned } from '../access/policy/template-policy.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { FairQueue } from './fair-queue.ts';

/**
 * Maximum number of waiting plans. Each takes at most about 15 ms (`admissionWork`), and keeps its AdmissionReview, up to 4 MiB, in memory.
 */
export const maxWaitingPlans = 32;

/**
 * Runs the plans of the template webhooks. Client addresses share the processor time equally, and the namespaces of one address share its
 * part. The API server authorizes its users for the namespace of the template, but a client that calls the port directly can name any. The
 * queue does not distinguish users: a user who may create ServiceAccounts could act as any number of them.
 */
export class AdmissionPlanQueue {
  readonly #queue: FairQueue;

  constructor(clock: Clock) {
    this.#queue = new FairQueue({ clock, maxWaiting: maxWaitingPlans });
  }

  /**
   * Runs plans of templates of the namespace. If more than `maxWaitingPlans` plans wait, the queue chooses the address with the most
   * waiting plans, then the namespace of that address with the most, and drops the newest plan of that namespace.
   */
  runnerFor(address: string, namespace: string) {
    return {
      /**
       * Resolves to the result of `plan`, or to `notPlanned` if the queue drops it. Rejects with what `plan` throws or, if the signal
       * aborts before the plan starts, with the reason of the signal.
       */
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
