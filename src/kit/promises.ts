import { setMaxListeners } from 'node:events';
import type { Clock } from './clock.ts';
import { CodedError } from './errors.ts';

/** Rejects with `DeadlineExceeded` after `ms`. The work goes on: abort it if possible. */
export function withDeadline<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(ms, () => reject(new CodedError('DeadlineExceeded', `no result within ${ms} ms`)));
    promise.then(resolve, reject).finally(cancel);
  });
}

/** Rejects with the reason of `signal` if that aborts first; the work goes on. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: whenAborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  if (signal.aborted) onAbort();
  // Many waits may share one signal.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([whenAborted, promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
