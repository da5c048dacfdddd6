import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** Give up after this many milliseconds. */
  readonly timeoutMs: number;
  /** Pause between two checks. Default 50 ms. */
  readonly everyMs?: number;
}

/**
 * Polls `condition` until it returns a value other than undefined or false, and returns that value. Rejects only after a check that began
 * after the timeout: on a machine that stalls, an earlier check may take long and still return what held before the timeout.
 */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  options: WaitOptions,
): Promise<T> {
  const deadline = performance.now() + options.timeoutMs;
  for (;;) {
    const startedMs = performance.now();
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (startedMs > deadline) throw new Error(`waited ${options.timeoutMs} ms for ${what}`);
    await sleep(options.everyMs ?? 50);
  }
}
