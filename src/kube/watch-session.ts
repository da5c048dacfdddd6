import { retryAfterMsOf } from '../kit/backoff.ts';
import type { Cancel, Clock } from '../kit/clock.ts';
import { ApiError, isExpired, isForbidden, isUnauthorized } from './errors.ts';
import type { Query, Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { openWatchStream } from './watch-stream.ts';

/** Default of `WatchSessionOptions.silenceMs`, milliseconds. */
const SILENCE_MS = 20_000;
/** How long the server may take to accept a new connection, milliseconds. With SILENCE_MS, a dead connection is noticed within 28 s. */
const SUCCESSOR_HEAD_MS = 8_000;
/** How long the server may take to accept the first connection, milliseconds. */
const FIRST_HEAD_MS = 30_000;
/** Delay before the next successor if the server rejected one without Retry-After, milliseconds. */
const REJECTED_RETRY_MS = 5_000;
/** Maximum wait for a Retry-After, milliseconds. The session shortens a longer one. */
export const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * Why a watch is checked. `connection`: its connection may be dead; received data disproves that. `permission`: the server may no longer
 * allow the watch; only an accepted new connection disproves that.
 */
export type WatchDoubt = 'connection' | 'permission';

/** The watch to open, and its callbacks. */
export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** How long the connection may receive nothing before the session opens a successor, milliseconds. Default 20 000. */
  readonly silenceMs?: number | undefined;
  readonly path: string;
  /** Returns the query of a watch that starts after the last resourceVersion seen. Called for each connection. */
  readonly query: () => Query;
  /** Called when the server accepts a connection or sends data. */
  readonly alive: () => void;
  /**
   * Called when the server has accepted the watch, with a function that opens a successor at once. The session calls the returned function
   * when the watch ends.
   */
  readonly opened?: (check: (doubt: WatchDoubt) => void) => Cancel;
  /** Called for every event but ERROR. An error that it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  /**
   * Called when the server rejects a successor with any status but 401, 403, and 410, usually because it is too busy. `attempt` counts these
   * calls since the server last accepted a connection, from 0. The current connection stays.
   */
  readonly successorRejected?: (error: ApiError, attempt: number) => void;
  readonly signal: AbortSignal;
}

/**
 * One watch for the reflector, over successive connections. A silent connection may be dead, and an open one does not show whether the
 * server still allows the watch. So after some silence, the session opens a second connection, the successor, from the last resourceVersion
 * seen. Once the server accepts it, the successor replaces the current connection. If the silent connection receives data first, the
 * session closes the successor, unless the permission is in doubt. If opening the successor fails or times out, or if the server answers
 * 401, 403, or 410, the watch ends. After any other answer, the current connection, if it is still open, stays, and the session tries again
 * later.
 *
 * Resolves when the server closes the watch without an error. Rejects with the error that broke it, or with the reason of `signal`.
 */
export function runWatchSession(options: WatchSessionOptions): Promise<void> {
  return new Promise((resolve, reject) => new WatchSession(options, resolve, reject).start());
}

/** The state of `runWatchSession`: its connections, and when it checks the current one. */
class WatchSession {
  readonly #options: WatchSessionOptions;
  readonly #silenceMs: number;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  readonly #onAbort = (): void => this.#fail(this.#options.signal.reason);
  /** Closes the current connection; undefined once it has ended. */
  #closeCurrent: Cancel | undefined;
  /** Closes the successor; undefined while there is none. */
  #closeSuccessor: Cancel | undefined;
  #cancelCheck: Cancel = () => {};
  /** The function that `opened` returned; undefined until then. */
  #onClose: Cancel | undefined;
  /** Whether a permission is in doubt: the session keeps the successor even if the current connection receives data. */
  #isPermissionDoubted = false;
  /** When the server last accepted a connection or sent data, milliseconds on the monotonic clock. */
  #aliveAtMs: number;
  /** Number of successors that the server has rejected since it last accepted a connection. */
  #rejected = 0;

  /** One of `resolve` and `reject` is called when the watch ends. */
  constructor(options: WatchSessionOptions, resolve: () => void, reject: (error: unknown) => void) {
    this.#options = options;
    this.#silenceMs = options.silenceMs ?? SILENCE_MS;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#aliveAtMs = options.clock.monotonic();
  }

  /** Opens the first connection. */
  start(): void {
    const { signal, opened } = this.#options;
    if (signal.aborted) {
      this.#reject(signal.reason);
      return;
    }
    signal.addEventListener('abort', this.#onAbort, { once: true });
    this.#closeCurrent = this.#open(
      FIRST_HEAD_MS,
      () => {
        this.#recordAlive();
        this.#scheduleCheck(this.#silenceMs);
        this.#onClose = opened?.((doubt) => this.#onDoubt(doubt));
      },
      (error) => this.#onCurrentEnded(error),
    );
  }

  #open(headTimeoutMs: number, answered: () => void, ended: (error?: unknown) => void): Cancel {
    const { transport, path, query } = this.#options;
    return openWatchStream(
      transport,
      { path, query: query(), headTimeoutMs },
      { answered, alive: () => this.#onAlive(), event: (event) => this.#onEvent(event), ended },
    );
  }

  /** Opens the successor, which replaces the current connection once the server accepts it. */
  #openSuccessor(): void {
    let accepted = false;
    const close = this.#open(
      SUCCESSOR_HEAD_MS,
      () => {
        accepted = true;
        this.#closeCurrent?.();
        this.#closeCurrent = close;
        this.#closeSuccessor = undefined;
        this.#isPermissionDoubted = false;
        this.#rejected = 0;
        this.#recordAlive();
        this.#scheduleCheck(this.#silenceMs);
      },
      (error) => (accepted ? this.#onCurrentEnded(error) : this.#onSuccessorRejected(error)),
    );
    this.#closeSuccessor = close;
  }

  #onSuccessorRejected(error: unknown): void {
    this.#closeSuccessor = undefined;
    // The server may be too busy for a successor; the current watch may still be healthy.
    const keepsCurrent =
      error instanceof ApiError && !isExpired(error) && !isUnauthorized(error) && !isForbidden(error);
    if (!keepsCurrent || this.#closeCurrent === undefined) {
      this.#fail(error);
      return;
    }
    this.#options.successorRejected?.(error, this.#rejected++);
    this.#scheduleCheck(Math.min(retryAfterMsOf(error) || REJECTED_RETRY_MS, LONGEST_RETRY_AFTER_MS));
  }

  #onCurrentEnded(error: unknown): void {
    this.#closeCurrent = undefined;
    // If a successor is pending, its result decides whether the watch ends.
    if (this.#closeSuccessor) return;
    if (error === undefined) this.#finish(this.#resolve);
    else this.#fail(error);
  }

  #onEvent(event: WatchEvent): void {
    try {
      if (event.type === 'ERROR') this.#fail(event.error);
      else this.#options.event(event);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** A connection received data. A successor receives none while it is pending, so the current connection is healthy and needs none. */
  #onAlive(): void {
    this.#recordAlive();
    if (!this.#closeSuccessor || this.#isPermissionDoubted) return;
    this.#closeSuccessor();
    this.#closeSuccessor = undefined;
    this.#scheduleCheck(this.#silenceMs);
  }

  #onDoubt(doubt: WatchDoubt): void {
    this.#isPermissionDoubted ||= doubt === 'permission';
    if (this.#closeSuccessor) return;
    this.#cancelCheck();
    this.#openSuccessor();
  }

  #recordAlive(): void {
    this.#aliveAtMs = this.#options.clock.monotonic();
    this.#options.alive();
  }

  #scheduleCheck(delayMs: number): void {
    this.#cancelCheck();
    this.#cancelCheck = this.#options.clock.schedule(delayMs, () => this.#check());
  }

  /** Opens a successor if the watch has been silent for too long or its permission is in doubt; otherwise checks again later. */
  #check(): void {
    const silentUntilMs = this.#aliveAtMs + this.#silenceMs;
    const leftMs = this.#isPermissionDoubted ? 0 : silentUntilMs - this.#options.clock.monotonic();
    if (leftMs > 0) this.#scheduleCheck(leftMs);
    else this.#openSuccessor();
  }

  #fail(error: unknown): void {
    this.#finish(() => this.#reject(error));
  }

  /** Closes everything, then settles the promise of the session. */
  #finish(settle: () => void): void {
    this.#cancelCheck();
    this.#onClose?.();
    this.#closeCurrent?.();
    this.#closeSuccessor?.();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    settle();
  }
}
