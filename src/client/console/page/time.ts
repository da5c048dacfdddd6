import { useEffect, useState } from 'preact/hooks';

/** The only file of the page with clocks and timers. Times follow the clock of the API server. */
let aheadMs = 0;

/** `serverMs`: the clock of the API server, epoch ms. */
export function setServerTime(serverMs: number): void {
  aheadMs = serverMs - Date.now();
}

/** How far the clock of the API server is ahead of this machine's. */
export const clockAheadMs = (): number => aheadMs;

export const nowMs = (): number => Date.now() + aheadMs;

/** Calls once, `ms` from now, unless the result is called before. */
export function after(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
}

/** The time now; renders again each `everyMs`. */
export function useNow(everyMs = 1000): number {
  const [now, set] = useState(nowMs());
  useEffect(() => {
    const timer = setInterval(() => set(nowMs()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** For machines: RFC 3339. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** What a field of type `datetime-local` has, as RFC 3339; empty if it has none. */
export const isoOfLocal = (local: string): string => (local === '' ? '' : isoTime(new Date(local).getTime()));

const format = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** In the reader's time zone: `27 Nov 14:05`. */
export const localTime = (ms: number): string => format.format(ms);
