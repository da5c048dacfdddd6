/** The values of controller-runtime's `result` label. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error';

/** Of one controller and its queue. Methods are cheap and never throw. */
export interface ControllerMetrics {
  /** Due keys: they wait for a worker or for their own current run, or the queue refused them. */
  depth(keys: number): void;
  /** Also when the key merges with a waiting one. */
  added(): void;
  /** From when the key became due until a worker got it. */
  waited(seconds: number): void;
  /** A key was requeued with backoff. */
  retried(): void;
  /** The number of busy workers. */
  active(workers: number): void;
  /** Not called for an aborted reconcile. */
  reconciled(outcome: ReconcileOutcome, seconds: number): void;
}

export const noControllerMetrics: ControllerMetrics = {
  depth() {},
  added() {},
  waited() {},
  retried() {},
  active() {},
  reconciled() {},
};
