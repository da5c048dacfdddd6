import { askedDelayMs } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { isAlreadyExists, isConflict, isForbidden, isObjectNotFound, isUnreachable } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { SyncObserver } from '../metrics.ts';
import { Attempts } from './attempts.ts';
import type { Side, SyncPass, SyncRules, Write } from './kind.ts';
import type { Problem } from './problems.ts';

export interface WriterOptions {
  readonly rules: SyncRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  readonly random: () => number;
  /** Enqueues a key at once. */
  readonly wake: (key: string) => void;
}

/** Sends the calls of a pass, unless their backoff still runs. Turns each failure into a requeue and, where due, a problem. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #attempts: Attempts;
  /** By key and action: the problem of the last call, kept until the next one. */
  readonly #problems = new Map<string, Map<string, Problem>>();
  /** Keys with a call that the provider did not answer, or answered with 429 or 5xx. Ends with a success of the key, or its retry. */
  readonly #unreachable = new Set<string>();
  #wokenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.random);
  }

  /** Returns whether the call was sent and succeeded. Rejects only after the pass's signal has aborted. */
  async try(pass: SyncPass, write: Write, call: () => Promise<void>): Promise<boolean> {
    const { clock } = this.#options;
    pass.signal.throwIfAborted();
    const { side, content } = write;
    const action = actionOf(write);
    const waitMs = this.#attempts.waitMs(pass.key, action, content, clock.monotonic());
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
      this.#recordFailure(pass, write, error);
      return false;
    }
    if (write.repeatable) this.#attempts.forget(pass.key, action);
    else this.#attempts.recordSuccess(pass.key, action, content, clock.monotonic());
    if (side === 'provider') this.#retryUnreachable(pass.key);
    return true;
  }

  /** Records a write that the cluster accepted but did not keep. The cause may be temporary; for example, a schema is not served yet. */
  recordIneffective(pass: SyncPass, write: Write): void {
    const { rules, clock } = this.#options;
    const action = actionOf(write);
    const waitMs = this.#attempts.recordIneffective(
      pass.key,
      action,
      write.content,
      clock.monotonic(),
      rules.ineffectiveCapMs,
    );
    pass.requeueAfter(waitMs);
    if (waitMs > STUCK_MS) this.#addProblem(pass, action, { rank: 'partial', message: rules.ineffective[write.side] });
  }

  /** Forgets backoffs and problems of the key. */
  forget(key: string): void {
    this.#attempts.forget(key);
    this.#unreachable.delete(key);
    this.#problems.delete(key);
  }

  /** Forgets backoffs and problems of all keys. */
  clear(): void {
    this.#attempts.clear();
    this.#problems.clear();
    this.#unreachable.clear();
  }

  #recordFailure(pass: SyncPass, write: Write, error: unknown): void {
    const { side, content } = write;
    const { clock, log, rules } = this.#options;
    const action = actionOf(write);
    const recordFailure = (capMs: number): number =>
      this.#attempts.recordFailure(pass.key, action, content, clock.monotonic(), capMs);
    const message = describe(error);
    if (isStaleWrite(error)) {
      // The cache did not have the newest version. Its event normally enqueues the key; the requeue is a fallback.
      this.#options.observer.conflict(side);
      const waitMs = recordFailure(CAP_MS);
      pass.requeueAfter(Math.max(STALE_MS, waitMs));
      // Without an event for so long, the cause must be another one, such as a missing namespace.
      if (waitMs > STUCK_MS) this.#addProblem(pass, action, problemOf(side, false, message));
      return;
    }
    const forbidden = isForbidden(error);
    const waitMs = Math.max(askedDelayMs(error), recordFailure(forbidden ? FORBIDDEN_CAP_MS : CAP_MS));
    pass.requeueAfter(waitMs);
    const fields = { key: pass.key, action: write.action, side, error: message, retryInMs: Math.round(waitMs) };
    // During an outage of the provider, only the first failure is a warning.
    if (this.#unreachable.size === 0) log.warn('a call failed', fields);
    else log.debug('a call failed', fields);
    if (isUnreachable(error)) {
      if (side === 'provider') this.#unreachable.add(pass.key);
    } else if (!forbidden || rules.forbiddenAtOnce || waitMs > STUCK_MS) {
      this.#addProblem(pass, action, problemOf(side, forbidden, message));
    }
  }

  #addProblem(pass: SyncPass, action: string, problem: Problem): void {
    const problems = this.#problems.get(pass.key) ?? new Map<string, Problem>();
    this.#problems.set(pass.key, problems.set(action, problem));
    pass.addProblem(problem);
  }

  /** The first call that succeeds in the provider after an outage retries the calls that did not reach it. */
  #retryUnreachable(key: string): void {
    this.#unreachable.delete(key);
    const nowMs = this.#options.clock.monotonic();
    if (this.#unreachable.size === 0 || nowMs - this.#wokenAtMs < WAKE_MS) return;
    this.#wokenAtMs = nowMs;
    for (const other of this.#unreachable) {
      this.#attempts.retryNow(other);
      this.#options.wake(other);
    }
    this.#unreachable.clear();
  }
}

/** Longest backoff after a failure, milliseconds, unless the server asks for a longer one. */
const CAP_MS = 30_000;
/** Longest backoff after a 403, milliseconds. Some providers revoke our permissions for a moment while they grant those of others. */
const FORBIDDEN_CAP_MS = 5_000;
/** Shortest requeue delay after a stale write, milliseconds. */
const STALE_MS = 1_000;
/** Backoff above which a failure that may be temporary is reported as a problem, milliseconds. */
const STUCK_MS = 2_000;
/** Minimum interval between retries after an outage, milliseconds, for a provider that is reachable only intermittently. */
const WAKE_MS = 1_000;

const isStaleWrite = (error: unknown): boolean =>
  isConflict(error) || isAlreadyExists(error) || isObjectNotFound(error);

const actionOf = ({ action, side }: Write): string => `${action} ${side}`;

const problemOf = (side: Side, forbidden: boolean, message: string): Problem => ({
  rank: forbidden ? 'forbidden' : 'failing',
  message: `the ${side} ${forbidden ? 'denied permission' : 'rejected the request'}: ${message}`,
});
