/** How one reconcile ended, in the words of controller-runtime's `result` label. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error';

/** What a controller and its queue report. One instance a controller; every method is cheap and never throws. */
export interface ControllerMetrics {
  /** Keys that are due and wait for a worker. */
  depth(keys: number): void;
  /** A key was added, also when it merged with one that waits. */
  added(): void;
  /** A key was handed out `seconds` after it became due. */
  waited(seconds: number): void;
  /** A key was put back with backoff. */
  retried(): void;
  /** Workers that are busy now. */
  active(workers: number): void;
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
