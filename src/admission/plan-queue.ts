import { notPlanned } from '../access/policy/template-policy.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { FairQueue } from './fair-queue.ts';

/**
 * Maximum number of waiting plans. Each takes at most about 15 ms (`admissionWork`), and keeps its AdmissionReview, up to 4 MiB, in memory.
 */
export const maxWaitingPlans = 32;

/**
 * Runs the plans of the template webhooks. Client addresses share the processor time, and the namespaces of the templates share that of
 * their address. The API server authorized its caller for the namespace, while a client that calls the port directly can name any. The
 * queue does not distinguish users: a user who may create ServiceAccounts could act as any number of them.
 */
export class AdmissionPlanQueue {
  readonly #queue: FairQueue;

  constructor(clock: Clock) {
    this.#queue = new FairQueue({ clock, maxWaiting: maxWaitingPlans });
  }

  /**
   * Runs plans of templates of the namespace. If too many plans wait, the queue drops the newest plan of the namespace with the most, of the
   * address with the most: its result is `notPlanned`.
   */
  runnerFor(address: string, namespace: string) {
    return {
      /** Settles as `plan` does. If the signal aborts before the plan starts, rejects with its reason. */
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
