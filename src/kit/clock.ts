/**
 * Time for the rest of the program: instants are epoch milliseconds (number), durations are milliseconds.
 * Only this file uses the clock and timers of the platform; lint enforces that.
 */

/** Cancels the scheduled call. Has no effect if the call was cancelled before or has run. */
export type Cancel = () => void;

/** The two clocks of a process, and its timers. Tests replace them. */
export interface Clock {
  /** Wall clock, epoch milliseconds. May jump in both directions. */
  now(): number;
  /** Milliseconds since an arbitrary origin; never goes backwards, unaffected by changes of the wall clock. */
  monotonic(): number;
  /**
   * Runs `callback` once, when `monotonic()` has advanced by at least `delayMs` (negative counts as 0). With 0, it runs after the process
   * has read pending input, and keeps the process alive until then. A longer delay does not keep the process alive.
   */
  schedule(delayMs: number, callback: () => void): Cancel;
}

/** Node fires timers above 2^31 - 1 ms at once, so a longer wait uses several timers. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clocks and timers of the platform. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(delayMs, callback) {
    if (delayMs <= 0) {
      // The shortest timer of Node takes a millisecond or two. The immediate stays referenced, so that the loop does not wait for input first.
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    }
    const dueMs = performance.now() + delayMs;
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const leftMs = Math.max(0, Math.ceil(dueMs - performance.now()));
      // Node counts from the cached time of its event loop, so its timers are often a millisecond or two early.
      timer = setTimeout(() => (performance.now() < dueMs ? arm() : callback()), Math.min(leftMs, LONGEST_TIMER_MS));
      timer.unref();
    };
    arm();
    return () => clearTimeout(timer);
  },
};

/** Milliseconds since an arbitrary origin that all threads share, unlike that of `monotonic`; never goes backwards. */
export const threadsMonotonic = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** Keeps the process alive until the returned function is called. The timers of a Clock do not keep it alive. */
export function stayAlive(): Cancel {
  const timer = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(timer);
}

/** `2026-11-21T09:30:00Z`: RFC 3339 in UTC with whole seconds (rounded down), the form of metav1.Time. */
export function formatTime(instantMs: number): string {
  return `${new Date(Math.floor(instantMs / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}

/** `2026-11-21T09:30:00.123000Z`: the form of metav1.MicroTime (Lease, Event). */
export function formatMicroTime(instantMs: number): string {
  return `${new Date(Math.floor(instantMs)).toISOString().slice(0, 23)}000Z`;
}

/** The instant of an RFC 3339 timestamp, epoch milliseconds; undefined if the text is not one. */
export function parseTime(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}

/** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. */
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

/** The instant of an HTTP `Date` header (IMF-fixdate of RFC 9110), epoch milliseconds; undefined if the text has another form. */
export function parseHttpDate(text: string): number | undefined {
  if (!/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/.test(text)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}

/** Start of a day in UTC, epoch milliseconds. `month` counts from 1. Day 31 of a month with 30 days is day 1 of the next month. */
export function utcMidnight(year: number, month: number, day: number): number {
  return Date.UTC(year, month - 1, day);
}
