import { type Clock, sleep } from './clock.ts';

/** How long work may go on without a pause, milliseconds. */
const mostMs = 5;

/**
 * For long loops that wait for nothing: to be awaited after each piece. It pauses for a moment once 5 ms have passed since the last
 * pause, so that timers and sockets are looked after meanwhile. Rejects with the reason of `signal`.
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
