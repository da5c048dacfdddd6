import type { Cancel, Clock } from '../kit/clock.ts';
import type { Query, Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { openWatchStream } from './watch-stream.ts';

/** How long a watch may receive nothing, milliseconds. API servers send a bookmark about once a minute. */
export const SILENCE_MS = 75_000;
/** How long the server may take to accept the watch, milliseconds. */
const HEAD_MS = 30_000;

/** The watch to open, and its callbacks. */
export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly path: string;
  readonly query: Query;
  /** Called when the server accepts the watch or sends data. */
  readonly alive: () => void;
  /**
   * Called when the server has accepted the watch, with a function that ends it with an error. The session calls the returned function when
   * the watch ends.
   */
  readonly opened: (end: (error: Error) => void) => Cancel;
  /** Called for every event but ERROR. An error that it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  readonly signal: AbortSignal;
}

/**
 * One watch. Resolves when the server closes it without an error. Rejects with the error that broke it, with the reason of `signal`, or
 * after 75 s of silence: TCP notices a lost peer within 20 s, but a proxy may answer for a server that is gone.
 */
export function runWatchSession(options: WatchSessionOptions): Promise<void> {
  const { transport, clock, path, query, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    let leave: Cancel = () => {};
    let aliveAtMs = clock.monotonic();
    const finish = (settle: () => void): void => {
      cancelCheck();
      leave();
      close();
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const fail = (error: unknown): void => finish(() => reject(error));
    const onAbort = (): void => fail(signal.reason);
    const alive = (): void => {
      aliveAtMs = clock.monotonic();
      options.alive();
    };
    const check = (): void => {
      const leftMs = aliveAtMs + SILENCE_MS - clock.monotonic();
      if (leftMs > 0) cancelCheck = clock.schedule(leftMs, check);
      else fail(new Error(`the watch received nothing, not even a bookmark, for ${SILENCE_MS / 1000} s`));
    };
    let cancelCheck = clock.schedule(SILENCE_MS, check);
    signal.addEventListener('abort', onAbort, { once: true });
    const close = openWatchStream(
      transport,
      { path, query, headTimeoutMs: HEAD_MS },
      {
        answered: () => {
          alive();
          leave = options.opened(fail);
        },
        alive,
        event: (event) => {
          try {
            if (event.type === 'ERROR') fail(event.error);
            else options.event(event);
          } catch (error) {
            fail(error);
          }
        },
        ended: (error) => (error === undefined ? finish(resolve) : fail(error)),
      },
    );
  });
}
