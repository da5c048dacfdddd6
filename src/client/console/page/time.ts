import { useEffect, useState } from 'preact/hooks';

/** The only file of the page with clocks and timers. Times follow the clock of the API server. */
let aheadMs = 0;

/** `serverMs`: the clock of the API server, epoch ms. */
export function setServerTime(serverMs: number): void {
  aheadMs = serverMs - Date.now();
}

export const nowMs = (): number => Date.now() + aheadMs;

/** Resolves after `ms`. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

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

/** In the reader's time zone: `27 Nov 14:05`. */
export const localTime = (ms: number): string =>
  new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }).format(ms);
