import { type Clock, sleep } from './clock.ts';

/** How long work may run without a pause, milliseconds. */
const mostMs = 5;

/**
 * For long loops that never wait: await it after each item. Yields to timers and sockets once 5 ms have passed since the last pause.
 * Rejects with the reason of `signal`.
 */
export function pace(clock: Clock, signal: AbortSignal): () => Promise<void> | undefined {
  let since = clock.monotonic();
  return () => {
    signal.throwIfAborted();
    if (clock.monotonic() - since < mostMs) return undefined;
    return sleep(clock, 0, signal).then(() => {
      since = clock.monotonic();
    });
  };
}
