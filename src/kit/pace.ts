import { type Clock, sleep } from './clock.ts';

/** A loop may use the processor for this long before it pauses. */
export const SLICE_MS = 5;
/** A listening socket accepts one connection in a round, and many clients may be connecting. */
const ROUNDS = 16;
/** Ends the pause if other work makes the rounds long. */
const LONGEST_PAUSE_MS = 20;

/** After the process has handled its I/O and timers. About 30 µs in an idle process. */
export async function pause(clock: Clock): Promise<void> {
  const untilMs = clock.monotonic() + LONGEST_PAUSE_MS;
  let rounds = 0;
  do {
    await sleep(clock, 0);
    rounds++;
  } while (rounds < ROUNDS && clock.monotonic() < untilMs);
}

/**
 * For long loops that never wait: await the result after each item. It pauses every 5 ms, and
 * throws or rejects once `signal` has aborted.
 */
export function pace(clock: Clock, signal: AbortSignal): () => Promise<void> | undefined {
  let pausedAtMs = clock.monotonic();
  return () => {
    signal.throwIfAborted();
    if (clock.monotonic() - pausedAtMs < SLICE_MS) return undefined;
    return pause(clock).then(() => {
      signal.throwIfAborted();
      pausedAtMs = clock.monotonic();
    });
  };
}
