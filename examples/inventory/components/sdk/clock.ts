/** Wall time, monotonic time, and timers. Tests replace them. */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Milliseconds since an arbitrary origin; never goes backwards. */
  monotonic(): number;
  /** Returns a function that cancels the call. */
  schedule(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.schedule(delayMs, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** `2026-11-21T09:30:00Z`: whole seconds, rounded down. */
export const formatTime = (instantMs: number): string => `${new Date(instantMs).toISOString().slice(0, 19)}Z`;

/** From RFC 3339, to epoch milliseconds. */
export function parseTime(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}
