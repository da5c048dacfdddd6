/**
 * Time for the rest of the program: instants are epoch milliseconds (number), durations are
 * milliseconds. Only this file uses the clock and timers of the platform; lint enforces that.
 */

/** Has no effect after the call has run. */
export type Cancel = () => void;

/** The two clocks of a process, and its timers. Tests replace them. */
export interface Clock {
  /** Epoch milliseconds. May jump in both directions. */
  now(): number;
  /** Milliseconds since an arbitrary origin; never goes backwards. */
  monotonic(): number;
  /**
   * Once `monotonic()` has advanced by `delayMs`. With 0: once pending input was read. Only a delay
   * of 0 keeps the process alive.
   */
  schedule(delayMs: number, callback: () => void): Cancel;
}

/** Node fires longer timers at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delayMs, callback) {
    if (delayMs <= 0) {
      // Timers take a millisecond or two. Referenced, so that the loop does not wait for input.
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    }
    const dueMs = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const leftMs = Math.max(0, Math.ceil(dueMs - performance.now()));
      // Node counts from the cached time of its event loop, so its timers are often early.
      timer = setTimeout(() => (performance.now() < dueMs ? arm() : callback()), Math.min(leftMs, LONGEST_TIMER_MS));
      timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

/** As `monotonic`, but with one origin for all threads. */
export const threadsMonotonic = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** Timers of a Clock do not keep the process alive; this does, until the result is called. */
export function stayAlive(): Cancel {
  const timer = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(timer);
}

/** `2026-11-21T09:30:00Z`: whole seconds, rounded down, as in metav1.Time. */
export function formatTime(instantMs: number): string {
  return `${new Date(Math.floor(instantMs / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** `2026-11-21T09:30:00.123000Z`: as in metav1.MicroTime (Lease, Event). */
export function formatMicroTime(instantMs: number): string {
  return `${new Date(Math.floor(instantMs)).toISOString().slice(0, 23)}000Z`;
}

/** From RFC 3339, to epoch milliseconds. */
export function parseTime(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}

/** Rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** From an HTTP `Date` header (IMF-fixdate of RFC 9110), to epoch milliseconds. */
export function parseHttpDate(text: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(text)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}

/** `month` counts from 1. Day 31 of a month with 30 days is day 1 of the next. */
export function utcMidnight(year: number, month: number, day: number): number {
  return Date.UTC(year, month - 1, day);
}
