import { type Clock, sleep } from './clock.ts';

/** How long a loop may use the processor before it pauses, milliseconds. */
export const SLICE_MS = 5;
/** Rounds of the event loop in a pause. A listening socket accepts only one connection in a round, and many clients may be connecting. */
const ROUNDS = 16;
/** If other work makes the rounds long, the pause ends after this time, milliseconds. */
const LONGEST_PAUSE_MS = 20;

/** Resolves after the process has handled its I/O and timers, for several rounds of the event loop. An idle process needs about 30 µs. */
export async function pause(clock: Clock): Promise<void> {
  const untilMs = clock.monotonic() + LONGEST_PAUSE_MS;
  let rounds = 0;
  do {
    await sleep(clock, 0);
    rounds++;
  } while (rounds < ROUNDS && clock.monotonic() < untilMs);
}

/**
 * Returns a function for long loops that otherwise never wait. Call it after each item, and await its result: it pauses if 5 ms have passed
 * since the last pause. Once `signal` has aborted, it throws or rejects with the reason of the signal.
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
