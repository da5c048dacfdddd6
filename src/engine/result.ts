/** The result of a reconcile, by which the controller schedules the key. A reconciler never sleeps or requeues by itself. */
export type Result =
  /** The object is in its desired state; only a new event enqueues the key. */
  | { readonly kind: 'done' }
  /** Requeue after `delayMs`, in the least urgent lane. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /**
   * Requeue at the wall-clock instant `atMs` (epoch ms); NaN counts as `retry`. `lane`: 0 is the most urgent; default: the least urgent.
   */
  | { readonly kind: 'at'; readonly atMs: number; readonly lane?: number }
  /** Waits for objects that a source will report; `missing` names them for the log. No requeue. */
  | { readonly kind: 'notReady'; readonly missing: readonly string[] }
  /**
   * A fault that a later reconcile may not meet: requeue in the same lane with exponential backoff, but not before the `retryAfterMs` of
   * `cause`. `isConflict`: another writer changed an object first, which is normal. So a conflict is logged as a warning and counted as an
   * error only if the previous reconcile of the key also ended in a retry.
   */
  | { readonly kind: 'retry'; readonly cause: unknown; readonly isConflict?: boolean };

/** Builders of results; `Result` describes each kind. `retryConflict` builds a `retry` with `isConflict`. */
export const done: Result = { kind: 'done' };
export const after = (delayMs: number): Result => ({ kind: 'after', delayMs });
export const at = (atMs: number, lane?: number): Result =>
  lane === undefined ? { kind: 'at', atMs } : { kind: 'at', atMs, lane };
export const notReady = (...missing: string[]): Result => ({ kind: 'notReady', missing });
export const retry = (cause: unknown): Result => ({ kind: 'retry', cause });
export const retryConflict = (cause: unknown): Result => ({ kind: 'retry', cause, isConflict: true });

/**
 * Brings the object behind `key` to its desired state. Level-based: it gets a key, never an event, and reads the current state. `signal`
 * aborts when the controller stops, this process no longer leads, or the key becomes due in lane 0 (`lane0Aborts`). No write may start
 * after that, and the result is ignored. A thrown error counts as `retry`.
 */
export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<Result>;
}
