import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { ApiError, isConflict, TransportError } from '../../kube/errors.ts';
import type { Log } from '../../observe/log.ts';
import { Attempts } from './attempts.ts';
import type { Problem } from './problems.ts';
import type { SyncObserver } from './sync-observer.ts';
import type { Turn } from './turn.ts';

export interface WriterOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
  readonly random: () => number;
  /** Looks at a key again at once. */
  readonly wake: (key: string) => void;
}

export interface Write {
  readonly action: string;
  readonly side: 'consumer' | 'provider';
  /** Tells this write from another one of the same action. */
  readonly content: string;
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
  async try(turn: Turn, { action, side, content }: Write, call: () => Promise<void>): Promise<boolean> {
    const { clock } = this.#options;
    turn.signal.throwIfAborted();
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
      this.#failed(turn, { action, side, content }, error);
      return false;
    }
    this.#attempts.succeeded(turn.key, action, content, clock.monotonic());
    if (side === 'provider') this.#reached(turn.key);
    return true;
  }

  /** The write was accepted and changed nothing, for now or for good: a schema that has changed may not be served yet. */
  futile(turn: Turn, { action, side, content }: Write): void {
    const nowMs = this.#options.clock.monotonic();
    const waitMs = this.#attempts.futile(turn.key, action, content, nowMs, FUTILE_CAP_MS);
    turn.later(waitMs);
    if (waitMs > STUCK_MS) this.#complain(turn, action, futile(side));
  }

  /** May be made again at once. */
  forget(key: string, action?: string): void {
    this.#attempts.forget(key, action);
    if (action !== undefined) return;
    this.#cutOff.delete(key);
    this.#complaints.delete(key);
  }

  clear(): void {
    this.#attempts.clear();
    this.#complaints.clear();
    this.#cutOff.clear();
  }

  #failed(turn: Turn, write: Write, error: unknown): void {
    const { action, side, content } = write;
    const { clock, log } = this.#options;
    if (isConflict(error) || isGone(error)) {
      // Ours was not the newest version: the event that shows it is on its way, and this only makes sure.
      this.#options.observer.conflict(side);
      const waitMs = this.#attempts.failed(turn.key, action, content, clock.monotonic(), CAP_MS);
      turn.later(Math.max(STALE_MS, waitMs));
      // No event has made it another write for a while: something else is missing, such as the namespace.
      if (waitMs > STUCK_MS) this.#complain(turn, action, complaint(side, false, describe(error)));
      return;
    }
    const isForbidden = error instanceof ApiError && error.code === 403;
    const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    const capMs = isForbidden ? FORBIDDEN_CAP_MS : CAP_MS;
    const waitMs = Math.max(asked, this.#attempts.failed(turn.key, action, content, clock.monotonic(), capMs));
    turn.later(waitMs);
    const message = describe(error);
    const fields = { key: turn.key, action, side, error: message, retryInMs: Math.round(waitMs) };
    // An outage is told once, not once an object.
    if (this.#cutOff.size === 0) log.warn('a call failed', fields);
    else log.debug('a call failed', fields);
    if (side === 'provider' && isUnreachable(error)) this.#cutOff.add(turn.key);
    else if (!isUnreachable(error)) this.#complain(turn, action, complaint(side, isForbidden, message));
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
/** Each is a write, if one that changes nothing, and all objects of a kind may be in this case. */
const FUTILE_CAP_MS = 30 * 60_000;
const STALE_MS = 1_000;
const STUCK_MS = 2_000;
/** A provider that is there every other second must not wake everything each time. */
const WAKE_MS = 1_000;

/** The object is not there any more. A 404 without a reason means that the kind or the path is not. */
export const isGone = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && error.reason === 'NotFound';

const isUnreachable = (error: unknown): boolean =>
  error instanceof TransportError || (error instanceof ApiError && (error.code >= 500 || error.code === 429));

const complaint = (side: Write['side'], isForbidden: boolean, message: string): Problem => ({
  rank: isForbidden ? 'forbidden' : 'failing',
  message: `the ${side} ${isForbidden ? 'does not permit it' : 'refused it'}: ${message}`,
});

const futile = (side: Write['side']): Problem => ({
  rank: 'partial',
  message:
    side === 'provider'
      ? 'the provider accepts what is written to its copy and keeps something else: a webhook or a default of its own changes it'
      : 'the status of the copy has fields that are not kept here: the schema here does not know them',
});
