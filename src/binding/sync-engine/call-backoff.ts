import { backoffMs } from '../../kit/backoff.ts';
import { sha256Hex } from '../../kit/canonical-json.ts';

/** The last call of an action, and when it may be repeated. Times are monotonic milliseconds. */
interface Attempt {
  /** Fingerprint of the call's content. */
  fingerprint: string;
  /** Whether the last call failed. */
  failed: boolean;
  /**
   * If the last call failed: the number of consecutive failures, also with other contents. If the last call succeeded: the number of
   * successes with the same content directly before it.
   */
  count: number;
  atMs: number;
  notBeforeMs: number;
}

/**
 * Decides when a call may be repeated. A call with the same content as the last call of its key and action waits for the backoff, even if
 * the key is reconciled earlier: the last call failed, or another client reverted what it wrote. A call with other content may be sent at
 * once. Times are monotonic milliseconds.
 */
export class CallBackoff {
  readonly #random: () => number;
  readonly #attempts = new Map<string, Map<string, Attempt>>();
  #sweptAtMs = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Milliseconds until `action` may be tried with this content; Infinity after `recordIneffective` without a finite `capMs`. */
  waitMs(key: string, action: string, content: string, nowMs: number): number {
    const attempt = this.#attempts.get(key)?.get(action);
    if (!attempt || attempt.fingerprint !== fingerprint(content)) return 0;
    return Math.max(0, attempt.notBeforeMs - nowMs);
  }

  /** Records a failure. Returns the milliseconds until the call may be retried, at most `capMs`. */
  recordFailure(key: string, action: string, content: string, nowMs: number, capMs: number): number {
    const before = this.#attempts.get(key)?.get(action);
    const attempt = before?.failed ? before.count : 0;
    const waitMs = backoffMs({ baseMs: BASE_MS, capMs, attempt, jitter: 'half', random: this.#random });
    this.#set(key, action, { content, count: attempt + 1, failed: true, nowMs, waitMs });
    return waitMs;
  }

  /** Records a success. The same write may be repeated only after a pause, which doubles with each repeat from 0.5 s up to 30 s. */
  recordSuccess(key: string, action: string, content: string, nowMs: number): void {
    const before = this.#attempts.get(key)?.get(action);
    const isRepeat = before && !before.failed && before.fingerprint === fingerprint(content);
    const count = isRepeat ? before.count + 1 : 0;
    const waitMs = backoffMs({ baseMs: REPEAT_BASE_MS, capMs: REPEAT_CAP_MS, attempt: count, jitter: 'none' });
    this.#set(key, action, { content, count, failed: false, nowMs, waitMs });
  }

  /**
   * Records that the last write succeeded, but the cluster stored another content; call it after `recordSuccess`. The same write may be
   * repeated after a pause that doubles up to `capMs` milliseconds. With the default, Infinity, it may be repeated only after a call with
   * other content, `forget`, or `clear`. Returns the milliseconds until it may be repeated.
   */
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

  /** Ends the backoff of all failed actions of the key. */
  retryNow(key: string): void {
    for (const attempt of this.#attempts.get(key)?.values() ?? []) if (attempt.failed) attempt.notBeforeMs = 0;
  }

  /** Forgets the action; without `action`, all actions of the key. */
  forget(key: string, action?: string): void {
    if (action === undefined) this.#attempts.delete(key);
    else this.#attempts.get(key)?.delete(action);
  }

  /** Forgets all keys. */
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

  /** At most every five minutes, forgets attempts whose backoff ended at least five minutes ago. */
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

/** Upper bound of the first backoff after a failure, milliseconds. Jitter shortens it by up to a half. */
const BASE_MS = 100;
/** First and longest pause between equal writes that succeeded, milliseconds. `capMs` limits the pauses after ineffective writes. */
const REPEAT_BASE_MS = 500;
const REPEAT_CAP_MS = 30_000;
/** Time after which an attempt is forgotten, and minimum interval between sweeps, milliseconds. */
const FORGET_MS = 5 * 60_000;

/** The content itself, or its digest if it is long. */
const fingerprint = (content: string): string => (content.length <= 64 ? content : sha256Hex(content));
