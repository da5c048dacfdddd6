/** How one reconcile ended: the values of controller-runtime's `result` label. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error';

/** Metrics of one controller and its queue. Methods are cheap and never throw. */
export interface ControllerMetrics {
  /** Keys that are due: they wait for a worker or for their own current run, or the queue refused them. */
  depth(keys: number): void;
  /** A key was added; also called when the key merges with a waiting one. */
  added(): void;
  /** A worker got a key `seconds` after the key became due. */
  waited(seconds: number): void;
  /** A key was requeued with backoff. */
  retried(): void;
  /** The number of busy workers. */
  active(workers: number): void;
  /** A reconcile ended after `seconds`. Not called for an aborted one. */
  reconciled(outcome: ReconcileOutcome, seconds: number): void;
}

/** Records nothing. */
export const noControllerMetrics: ControllerMetrics = {
  depth() {},
  added() {},
  waited() {},
  retried() {},
  active() {},
  reconciled() {},
};
