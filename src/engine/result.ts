/** How the controller schedules the key; a reconciler never sleeps or requeues by itself. */
export type Result =
  /** Only a new event enqueues the key. */
  | { readonly kind: 'done' }
  /** In the least urgent lane. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** On the wall clock, epoch ms. Default lane: the least urgent. NaN counts as `retry`. */
  | { readonly kind: 'at'; readonly atMs: number; readonly lane?: number }
  /** Waits for objects that a source will report; `missing` names them for the log. */
  | { readonly kind: 'notReady'; readonly missing: readonly string[] }
  /**
   * Requeue in the same lane with exponential backoff, not before `retryAfterMs` of `cause`.
   * `isConflict`: another writer came first; a warning and an error only if it repeats.
   */
  | { readonly kind: 'retry'; readonly cause: unknown; readonly isConflict?: boolean };

export const done: Result = { kind: 'done' };
export const after = (delayMs: number): Result => ({ kind: 'after', delayMs });
export const at = (atMs: number, lane?: number): Result =>
  lane === undefined ? { kind: 'at', atMs } : { kind: 'at', atMs, lane };
export const notReady = (...missing: string[]): Result => ({ kind: 'notReady', missing });
export const retry = (cause: unknown): Result => ({ kind: 'retry', cause });
export const retryConflict = (cause: unknown): Result => ({ kind: 'retry', cause, isConflict: true });

/**
 * Brings the object behind `key` to its desired state. Level-based: it gets no event and reads the
 * current state. No write may start after `signal` has aborted: the controller stops, another
 * process leads, or the key is due in lane 0 (`lane0Aborts`). A thrown error counts as `retry`.
 */
export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<Result>;
}
