import { askedDelayMs } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { isAlreadyExists, isConflict, isForbidden, isObjectNotFound, isUnreachable } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { SyncObserver } from '../metrics.ts';
import { Attempts } from './attempts.ts';
import type { Side, SyncRules, Turn, Write } from './kind.ts';
import type { Problem } from './problems.ts';

export interface WriterOptions {
  readonly rules: SyncRules;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  readonly random: () => number;
  /** Looks at a key again at once. */
  readonly wake: (key: string) => void;
}

/** Makes the calls of a turn, each when it may be made, and turns what fails into the time of the next try and a problem to tell. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #attempts: Attempts;
  /** By key and action: what was wrong the last time, which holds until it is tried again. */
  readonly #complaints = new Map<string, Map<string, Problem>>();
  /** Keys whose last call did not get through to the provider. */
  readonly #cutOff = new Set<string>();
  #wokenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#attempts = new Attempts(options.random);
  }

  /** True when the call was made and succeeded. Rejects only with the reason of the turn's signal. */
  async try(turn: Turn, write: Write, call: () => Promise<void>): Promise<boolean> {
    const { clock } = this.#options;
    turn.signal.throwIfAborted();
    const { side, content } = write;
    const action = actionOf(write);
    const waitMs = this.#attempts.waitMs(turn.key, action, content, clock.monotonic());
    if (waitMs > 0) {
      const complaint = this.#complaints.get(turn.key)?.get(action);
      if (complaint) turn.complain(complaint);
      turn.later(waitMs);
      return false;
    }
    this.#complaints.get(turn.key)?.delete(action);
    try {
      await call();
    } catch (error) {
      if (turn.signal.aborted) throw error;
      this.#failed(turn, write, error);
      return false;
    }
    if (write.repeatable) this.#attempts.forget(turn.key, action);
    else this.#attempts.succeeded(turn.key, action, content, clock.monotonic());
    if (side === 'provider') this.#reached(turn.key);
    return true;
  }

  /** The write was accepted and changed nothing, for now or for good: a schema that has changed may not be served yet. */
  futile(turn: Turn, write: Write): void {
    const { rules, clock } = this.#options;
    const action = actionOf(write);
    const waitMs = this.#attempts.futile(turn.key, action, write.content, clock.monotonic(), rules.futileCapMs);
    turn.later(waitMs);
    if (waitMs > STUCK_MS) this.#complain(turn, action, { rank: 'partial', message: rules.futile[write.side] });
  }

  /** Every call of the key may be made again at once. */
  forget(key: string): void {
    this.#attempts.forget(key);
    this.#cutOff.delete(key);
    this.#complaints.delete(key);
  }

  clear(): void {
    this.#attempts.clear();
    this.#complaints.clear();
    this.#cutOff.clear();
  }

  #failed(turn: Turn, write: Write, error: unknown): void {
    const { side, content } = write;
    const { clock, log, rules } = this.#options;
    const action = actionOf(write);
    const failed = (capMs: number): number =>
      this.#attempts.failed(turn.key, action, content, clock.monotonic(), capMs);
    const message = describe(error);
    if (isOvertaken(error)) {
      // Ours was not the newest version: the event that shows it is on its way, and this only makes sure.
      this.#options.observer.conflict(side);
      const waitMs = failed(CAP_MS);
      turn.later(Math.max(STALE_MS, waitMs));
      // No event has made it another write for a while: something else is missing, such as the namespace.
      if (waitMs > STUCK_MS) this.#complain(turn, action, complaint(side, false, message));
      return;
    }
    const forbidden = isForbidden(error);
    const waitMs = Math.max(askedDelayMs(error), failed(forbidden ? FORBIDDEN_CAP_MS : CAP_MS));
    turn.later(waitMs);
    const fields = { key: turn.key, action: write.action, side, error: message, retryInMs: Math.round(waitMs) };
    // An outage is told once, not once an object.
    if (this.#cutOff.size === 0) log.warn('a call failed', fields);
    else log.debug('a call failed', fields);
    if (isUnreachable(error)) {
      if (side === 'provider') this.#cutOff.add(turn.key);
    } else if (!forbidden || rules.forbiddenAtOnce || waitMs > STUCK_MS) {
      this.#complain(turn, action, complaint(side, forbidden, message));
    }
  }

  #complain(turn: Turn, action: string, problem: Problem): void {
    const complaints = this.#complaints.get(turn.key) ?? new Map<string, Problem>();
    this.#complaints.set(turn.key, complaints.set(action, problem));
    turn.complain(problem);
  }

  /** After an outage the first call that gets through brings all the others back. */
  #reached(key: string): void {
    this.#cutOff.delete(key);
    const nowMs = this.#options.clock.monotonic();
    if (this.#cutOff.size === 0 || nowMs - this.#wokenAtMs < WAKE_MS) return;
    this.#wokenAtMs = nowMs;
    for (const other of this.#cutOff) {
      this.#attempts.retryNow(other);
      this.#options.wake(other);
    }
    this.#cutOff.clear();
  }
}

const CAP_MS = 30_000;
/** Of a provider that takes our rights away for a moment whenever it gives another consumer its own. */
const FORBIDDEN_CAP_MS = 5_000;
const STALE_MS = 1_000;
const STUCK_MS = 2_000;
/** A provider that is there every other second must not wake everything each time. */
const WAKE_MS = 1_000;

const isOvertaken = (error: unknown): boolean => isConflict(error) || isAlreadyExists(error) || isObjectNotFound(error);

/** The same action on the two sides is two. */
const actionOf = ({ action, side }: Write): string => `${action} ${side}`;

const complaint = (side: Side, forbidden: boolean, message: string): Problem => ({
  rank: forbidden ? 'forbidden' : 'failing',
  message: `the ${side} ${forbidden ? 'does not permit it' : 'refused it'}: ${message}`,
});
