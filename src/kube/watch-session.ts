import type { Cancel, Clock } from '../kit/clock.ts';
import { ApiError, isExpired } from './errors.ts';
import type { Query, Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { openWatchStream } from './watch-stream.ts';

/** A watch that is silent for this long gets a successor, milliseconds. */
const SILENCE_MS = 20_000;
/** With SILENCE_MS, this limits how long a dead connection stays unnoticed: 28 s, unless the server refuses successors. */
const SUCCESSOR_HEAD_MS = 8_000;
/** How long the server may take to accept the first connection, milliseconds. */
const FIRST_HEAD_MS = 30_000;
/** Delay before the next successor if the server refuses one without Retry-After. */
const REFUSED_MS = 5_000;

export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly path: string;
  /** Query of a watch that starts after the last version seen. */
  readonly query: () => Query;
  readonly alive: () => void;
  /** Called for every event but ERROR. An error that it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  readonly signal: AbortSignal;
}

/**
 * One watch for the reflector, over successive connections: only a new connection shows whether a silent one is healthy or dead. After
 * 20 s of silence, the session opens a successor from the last version seen, which takes over once the server accepts it. If the silent
 * connection receives data first, the session closes the successor.
 * Resolves when the server closes the watch regularly. Rejects with the error that broke it, or with the reason of `signal`.
 */
export function runWatchSession(options: WatchSessionOptions): Promise<void> {
  const { clock, signal } = options;
  return new Promise((resolve, reject) => {
    let closeCurrent: Cancel | undefined;
    let closeSuccessor: Cancel | undefined;
    let cancelCheck: Cancel = () => {};
    let aliveAtMs = clock.monotonic();

    const finish = (settle: () => void): void => {
      cancelCheck();
      closeCurrent?.();
      closeSuccessor?.();
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason));
    const fail = (error: unknown): void => finish(() => reject(error));

    const touch = (): void => {
      aliveAtMs = clock.monotonic();
      options.alive();
    };
    const checkIn = (delayMs: number): void => {
      cancelCheck();
      cancelCheck = clock.schedule(delayMs, check);
    };
    const check = (): void => {
      const leftMs = aliveAtMs + SILENCE_MS - clock.monotonic();
      if (leftMs > 0) checkIn(leftMs);
      else openSuccessor();
    };
    const onEvent = (event: WatchEvent): void => {
      try {
        if (event.type === 'ERROR') fail(event.error);
        else options.event(event);
      } catch (error) {
        fail(error);
      }
    };
    const open = (headTimeoutMs: number, answered: () => void, ended: (error?: unknown) => void): Cancel =>
      openWatchStream(
        options.transport,
        { path: options.path, query: options.query(), headTimeoutMs },
        { answered, alive: onAlive, event: onEvent, ended },
      );
    const onAlive = (): void => {
      touch();
      if (!closeSuccessor) return;
      closeSuccessor();
      closeSuccessor = undefined;
      checkIn(SILENCE_MS);
    };
    const onEnded = (error?: unknown): void => {
      closeCurrent = undefined;
      // If a successor is pending, its result decides.
      if (!closeSuccessor) finish(() => (error === undefined ? resolve() : reject(error)));
    };

    const openSuccessor = (): void => {
      let accepted = false;
      const closeOpened = open(
        SUCCESSOR_HEAD_MS,
        () => {
          accepted = true;
          closeCurrent?.();
          closeCurrent = closeOpened;
          closeSuccessor = undefined;
          touch();
          checkIn(SILENCE_MS);
        },
        (error) => {
          if (accepted) return onEnded(error);
          closeSuccessor = undefined;
          // An overloaded server refuses; the current watch may still be healthy.
          const refused = error instanceof ApiError && !isExpired(error) && closeCurrent !== undefined;
          if (refused) checkIn(error.retryAfterMs ?? REFUSED_MS);
          else fail(error);
        },
      );
      closeSuccessor = closeOpened;
    };

    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    closeCurrent = open(
      FIRST_HEAD_MS,
      () => {
        touch();
        checkIn(SILENCE_MS);
      },
      onEnded,
    );
  });
}
