import type { Cancel, Clock } from '../kit/clock.ts';
import type { Query, Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { openWatchStream } from './watch-stream.ts';

/** A watch that receives nothing for so long ends. A bookmark comes about once a minute. */
export const SILENCE_MS = 75_000;
/** Limit for the server to accept the watch. */
const HEAD_MS = 30_000;

export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly path: string;
  readonly query: Query;
  /** The server has accepted the watch or sent data. */
  readonly alive: () => void;
  /** The server has accepted the watch. The returned function is called at its end. */
  readonly opened: (end: (error: Error) => void) => Cancel;
  /** Every event but ERROR. An error that it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  readonly signal: AbortSignal;
}

/**
 * One watch, until the server closes it. Rejects with the error that broke it, the reason of
 * `signal`, or after 75 s of silence: a proxy may answer for a server that is gone.
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
