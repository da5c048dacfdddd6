/** What a reconcile came to. The controller turns it into the key's next turn; a reconciler never sleeps or requeues by itself. */
export type Result =
  /** The world is as wanted; only a new event brings the key back. */
  | { readonly kind: 'done' }
  /** Come back after `delayMs`, at the key's normal priority. */
  | { readonly kind: 'after'; readonly delayMs: number }
  /** Come back at the wall-clock instant `atMs` (epoch ms), in `lane` (default: the queue's lowest). */
  | { readonly kind: 'at'; readonly atMs: number; readonly lane?: number }
  /** Waiting for things that a source will report; `missing` names them for logs and metrics. No requeue. */
  | { readonly kind: 'notReady'; readonly missing: readonly string[] }
  /** A fault that may pass: come back with exponential backoff. */
  | { readonly kind: 'retry'; readonly cause: unknown };

export const done: Result = { kind: 'done' };
export const after = (delayMs: number): Result => ({ kind: 'after', delayMs });
export const at = (atMs: number, lane?: number): Result =>
  lane === undefined ? { kind: 'at', atMs } : { kind: 'at', atMs, lane };
export const notReady = (...missing: string[]): Result => ({ kind: 'notReady', missing });
export const retry = (cause: unknown): Result => ({ kind: 'retry', cause });

/**
 * Brings the object behind `key` to its wanted state. Level-based: it gets a key, never an event, and reads the present.
 * `signal` aborts when the controller stops or leadership is lost; no write may start after that.
 * A thrown error counts as `retry`.
 */
export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<Result>;
}
