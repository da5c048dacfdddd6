import { backoffMs } from '../../kit/backoff.ts';
import { sha256Hex } from '../../kit/canonical-json.ts';

interface Attempt {
  fingerprint: string;
  failed: boolean;
  /** Consecutive failures with any content, or repeats of a success with the same content. */
  count: number;
  atMs: number;
  notBeforeMs: number;
}

/**
 * When a call may be repeated: with the same content after the backoff, because it failed or
 * another client reverted it; with other content at once. Times are monotonic.
 */
export class CallBackoff {
  readonly #random: () => number;
  readonly #attempts = new Map<string, Map<string, Attempt>>();
  #sweptAtMs = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Infinity after `recordIneffective` without a finite `capMs`. */
  waitMs(key: string, action: string, content: string, nowMs: number): number {
    const attempt = this.#attempts.get(key)?.get(action);
    if (!attempt || attempt.fingerprint !== fingerprint(content)) return 0;
    return Math.max(0, attempt.notBeforeMs - nowMs);
  }

  /** Returns the wait before a retry. */
  recordFailure(key: string, action: string, content: string, nowMs: number, capMs: number): number {
    const before = this.#attempts.get(key)?.get(action);
    const attempt = before?.failed ? before.count : 0;
    const waitMs = backoffMs({ baseMs: BASE_MS, capMs, attempt, jitter: 'half', random: this.#random });
    this.#set(key, action, { content, count: attempt + 1, failed: true, nowMs, waitMs });
    return waitMs;
  }

  /** The same write waits 0.5 s, doubled with each repeat up to 30 s. */
  recordSuccess(key: string, action: string, content: string, nowMs: number): void {
    const before = this.#attempts.get(key)?.get(action);
    const isRepeat = before && !before.failed && before.fingerprint === fingerprint(content);
    const count = isRepeat ? before.count + 1 : 0;
    const waitMs = backoffMs({ baseMs: REPEAT_BASE_MS, capMs: REPEAT_CAP_MS, attempt: count, jitter: 'none' });
    this.#set(key, action, { content, count, failed: false, nowMs, waitMs });
  }

  /** The cluster stored something else. Default: never write the same again. */
  recordIneffective(
    key: string,
    action: string,
    content: string,
    nowMs: number,
    capMs = Number.POSITIVE_INFINITY,
  ): number {
    const count = this.#attempts.get(key)?.get(action)?.count ?? 0;
    const repeat = { baseMs: REPEAT_BASE_MS, capMs, attempt: count, jitter: 'none' } as const;
    const waitMs = Number.isFinite(capMs) ? backoffMs(repeat) : capMs;
    this.#set(key, action, { content, count, failed: false, nowMs, waitMs });
    return waitMs;
  }

  /** Ends the backoff of failed actions. */
  retryNow(key: string): void {
    for (const attempt of this.#attempts.get(key)?.values() ?? []) if (attempt.failed) attempt.notBeforeMs = 0;
  }

  /** Without `action`: all actions of the key. */
  forget(key: string, action?: string): void {
    if (action === undefined) this.#attempts.delete(key);
    else this.#attempts.get(key)?.delete(action);
  }

  clear(): void {
    this.#attempts.clear();
  }

  #set(
    key: string,
    action: string,
    next: { content: string; count: number; failed: boolean; nowMs: number; waitMs: number },
  ): void {
    const { content, count, failed, nowMs, waitMs } = next;
    this.#sweep(nowMs);
    const actions = this.#attempts.get(key) ?? new Map<string, Attempt>();
    this.#attempts.set(key, actions);
    actions.set(action, {
      fingerprint: fingerprint(content),
      count,
      failed,
      atMs: nowMs,
      notBeforeMs: nowMs + waitMs,
    });
  }

  /** Attempts whose backoff ended at least five minutes ago. */
  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptAtMs < FORGET_MS) return;
    this.#sweptAtMs = nowMs;
    for (const [key, actions] of this.#attempts) {
      for (const [action, { atMs, notBeforeMs }] of actions) {
        if (nowMs - Math.max(atMs, notBeforeMs) >= FORGET_MS) actions.delete(action);
      }
      if (actions.size === 0) this.#attempts.delete(key);
    }
  }
}

/** First backoff after a failure; jitter shortens it by up to a half. */
const BASE_MS = 100;
/** Between equal writes that succeeded. `capMs` limits it after ineffective writes. */
const REPEAT_BASE_MS = 500;
const REPEAT_CAP_MS = 30_000;
const FORGET_MS = 5 * 60_000;

/** Or its digest, if it is long. */
const fingerprint = (content: string): string => (content.length <= 64 ? content : sha256Hex(content));
