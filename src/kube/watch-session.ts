import type { Cancel, Clock } from '../kit/clock.ts';
import { ApiError, isExpired } from './errors.ts';
import type { Query, Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { openWatchStream } from './watch-stream.ts';

/** A watch that has been silent for so long gets a successor. */
const SILENCE_MS = 20_000;
/** Together with SILENCE_MS this bounds how long a dead connection stays unnoticed: 28 s. */
const SUCCESSOR_HEAD_MS = 8_000;
const FIRST_HEAD_MS = 30_000;
/** When the server refuses a successor without saying for how long. */
const REFUSED_MS = 5_000;

export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly path: string;
  /** Query of a watch that starts after what has been seen so far. */
  readonly query: () => Query;
  readonly alive: () => void;
  /** Called for everything but ERROR. What it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  readonly signal: AbortSignal;
}

/**
 * One watch as the reflector sees it, over one connection after another: a quiet connection may be healthy or dead, and only a new one
 * tells. After 20 s of silence a successor is opened from the last version seen; when the server accepts it, it takes over.
 * Resolves when the server closed the watch in the ordinary way; rejects with what broke it.
 */
export function runWatchSession(options: WatchSessionOptions): Promise<void> {
  const { clock, signal } = options;
  return new Promise((resolve, reject) => {
    let drop: Cancel | undefined;
    let dropSuccessor: Cancel | undefined;
    let cancelCheck: Cancel = () => {};
    let aliveAtMs = clock.monotonic();

    const finish = (settle: () => void): void => {
      cancelCheck();
      drop?.();
      dropSuccessor?.();
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
      if (!dropSuccessor) return;
      dropSuccessor();
      dropSuccessor = undefined;
      checkIn(SILENCE_MS);
    };
    const onEnded = (error?: unknown): void => {
      drop = undefined;
      // A successor on its way decides.
      if (!dropSuccessor) finish(() => (error === undefined ? resolve() : reject(error)));
    };

    const openSuccessor = (): void => {
      let accepted = false;
      const dropIt = open(
        SUCCESSOR_HEAD_MS,
        () => {
          accepted = true;
          drop?.();
          drop = dropIt;
          dropSuccessor = undefined;
          touch();
          checkIn(SILENCE_MS);
        },
        (error) => {
          if (accepted) return onEnded(error);
          dropSuccessor = undefined;
          // An overloaded server answers no: that says nothing against the watch we have.
          const refused = error instanceof ApiError && !isExpired(error) && drop !== undefined;
          if (refused) checkIn(error.retryAfterMs ?? REFUSED_MS);
          else fail(error);
        },
      );
      dropSuccessor = dropIt;
    };

    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    drop = open(
      FIRST_HEAD_MS,
      () => {
        touch();
        checkIn(SILENCE_MS);
      },
      onEnded,
    );
  });
}
