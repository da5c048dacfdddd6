import { retryAfterMsOf } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isObjectNotFound,
  isReplaced,
  isUnreachable,
} from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { SyncObserver } from '../metrics.ts';
import { CallBackoff } from './call-backoff.ts';
import type { Problem } from './problems.ts';
import type { CallId, SyncPass, SyncRules } from './strategy.ts';
import type { Side } from './syncer.ts';

export interface CallSenderOptions {
  readonly rules: SyncRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  readonly random: () => number;
  readonly wake: (key: string) => void;
}

/** Sends the reads and writes of a pass when their backoff allows; failures become requeues. */
export class CallSender {
  readonly #options: CallSenderOptions;
  readonly #backoff: CallBackoff;
  /** By key and action, until its next call. */
  readonly #problems = new Map<string, Map<string, Problem>>();
  /** Keys whose provider call got no answer, a 429, or a 5xx. */
  readonly #unreachable = new Set<string>();
  /** When `#retryUnreachable` last enqueued keys, monotonic. */
  #wokenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: CallSenderOptions) {
    this.#options = options;
    this.#backoff = new CallBackoff(options.random);
  }

  /** Whether the call was sent and succeeded. Rejects only after an abort. */
  async send(pass: SyncPass, id: CallId, call: () => Promise<void>): Promise<boolean> {
    const { clock } = this.#options;
    pass.signal.throwIfAborted();
    const { side, content } = id;
    const action = actionOf(id);
    const waitMs = this.#backoff.waitMs(pass.key, action, content, clock.monotonic());
    if (waitMs > 0) {
      const callProblem = this.#problems.get(pass.key)?.get(action);
      if (callProblem) pass.addProblem(callProblem);
      pass.requeueAfter(waitMs);
      return false;
    }
    this.#problems.get(pass.key)?.delete(action);
    try {
      await call();
    } catch (error) {
      if (pass.signal.aborted) throw error;
      this.#recordFailure(pass, id, error);
      return false;
    }
    if (id.repeatable) this.#backoff.forget(pass.key, action);
    else this.#backoff.recordSuccess(pass.key, action, content, clock.monotonic());
    if (side === 'provider') this.#retryUnreachable(pass.key);
    return true;
  }

  /** A write that the cluster accepted but did not keep, perhaps for a while. After `send`. */
  recordIneffective(pass: SyncPass, id: CallId): void {
    const { rules, clock } = this.#options;
    const action = actionOf(id);
    const waitMs = this.#backoff.recordIneffective(
      pass.key,
      action,
      id.content,
      clock.monotonic(),
      rules.ineffectiveCapMs,
    );
    pass.requeueAfter(waitMs);
    if (waitMs > STUCK_MS) this.#addProblem(pass, action, { rank: 'partial', message: rules.ineffective[id.side] });
  }

  forget(key: string): void {
    this.#backoff.forget(key);
    this.#unreachable.delete(key);
    this.#problems.delete(key);
  }

  clear(): void {
    this.#backoff.clear();
    this.#problems.clear();
    this.#unreachable.clear();
  }

  #recordFailure(pass: SyncPass, id: CallId, error: unknown): void {
    const { side, content } = id;
    const { clock, log, rules } = this.#options;
    const action = actionOf(id);
    const recordFailure = (capMs: number): number =>
      this.#backoff.recordFailure(pass.key, action, content, clock.monotonic(), capMs);
    const message = describe(error);
    if (isStaleWrite(error)) {
      // The cache was stale. The object's event normally enqueues the key; this is a fallback.
      this.#options.observer.conflict(side);
      const waitMs = recordFailure(CAP_MS);
      pass.requeueAfter(Math.max(STALE_MS, waitMs));
      // Another client may keep changing the object, or its namespace is missing.
      if (waitMs > STUCK_MS) this.#addProblem(pass, action, problemOf(side, false, message));
      return;
    }
    const forbidden = isForbidden(error);
    const waitMs = Math.max(retryAfterMsOf(error), recordFailure(forbidden ? FORBIDDEN_CAP_MS : CAP_MS));
    pass.requeueAfter(waitMs);
    const fields = { key: pass.key, action: id.action, side, error: message, retryInMs: Math.round(waitMs) };
    const isOutage = side === 'provider' && isUnreachable(error);
    // In an outage the calls of every key fail; only the first failure is a warning.
    if (isOutage && this.#unreachable.size > 0)
      log.debug('a call that syncs an object failed; the server retries', fields);
    else log.warn('a call that syncs an object failed; the server retries', fields);
    if (isOutage) this.#unreachable.add(pass.key);
    if (isUnreachable(error)) return;
    if (!forbidden || rules.forbiddenAtOnce || waitMs > STUCK_MS) {
      this.#addProblem(pass, action, problemOf(side, forbidden, message));
    }
  }

  #addProblem(pass: SyncPass, action: string, problem: Problem): void {
    const problems = this.#problems.get(pass.key) ?? new Map<string, Problem>();
    this.#problems.set(pass.key, problems.set(action, problem));
    pass.addProblem(problem);
  }

  /** After a success in the provider: enqueues the keys that failed during an outage. */
  #retryUnreachable(key: string): void {
    this.#unreachable.delete(key);
    const nowMs = this.#options.clock.monotonic();
    if (this.#unreachable.size === 0 || nowMs - this.#wokenAtMs < WAKE_MS) return;
    this.#wokenAtMs = nowMs;
    for (const other of this.#unreachable) {
      this.#backoff.retryNow(other);
      this.#options.wake(other);
    }
    this.#unreachable.clear();
  }
}

/** Unless the API server's Retry-After is longer. */
const CAP_MS = 30_000;
/** Some providers revoke permissions for a moment while they grant others. */
const FORBIDDEN_CAP_MS = 5_000;
/** After a stale write. */
const STALE_MS = 1_000;
/** Above this backoff, a failure that may be temporary is reported. */
const STUCK_MS = 2_000;
/** Between retries after an outage, for a provider that comes and goes. */
const WAKE_MS = 1_000;

const isStaleWrite = (error: unknown): boolean =>
  isConflict(error) || isReplaced(error) || isAlreadyExists(error) || isObjectNotFound(error);

const actionOf = ({ action, side }: CallId): string => `${action} ${side}`;

const problemOf = (side: Side, forbidden: boolean, message: string): Problem => ({
  rank: forbidden ? 'forbidden' : 'failing',
  message: `the ${side} ${forbidden ? 'denied permission' : 'rejected the request'}: ${message}`,
});
