import type { Cancel, Clock } from '../kit/clock.ts';
import { unlessAborted } from '../kit/promises.ts';
import { LineDecoder } from './line-decoder.ts';
import type { Query, Transport } from './transport.ts';
import { parseWatchEvent, type WatchEvent } from './watch-event.ts';

/** A watch that receives nothing for so long ends. A bookmark comes about once a minute. */
const SILENCE_MS = 75_000;
/** Limit for the server to accept the watch. */
const HEAD_MS = 30_000;

export interface WatchSessionOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly path: string;
  readonly query: Query;
  /** The server has accepted the watch or sent data. */
  readonly alive: () => void;
  /** The server has accepted the watch. The returned function is called at its end. */
  readonly opened: (end: (error: Error) => void) => Cancel;
  /** Every event but ERROR. An error that it throws ends the watch. */
  readonly event: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => void;
  readonly signal: AbortSignal;
}

/** A line is no event. The watch must restart from the last valid event. */
export class MalformedStreamError extends Error {
  override readonly name = 'MalformedStreamError';
}

/**
 * One watch, until the server closes it. Rejects with the error that broke it, the reason of
 * `signal`, or after 75 s of silence: a proxy may answer for a server that is gone.
 */
export async function runWatchSession(options: WatchSessionOptions): Promise<void> {
  const { clock, signal } = options;
  signal.throwIfAborted();
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let aliveAtMs = clock.monotonic();
  const check = (): void => {
    const leftMs = aliveAtMs + SILENCE_MS - clock.monotonic();
    if (leftMs > 0) cancelCheck = clock.schedule(leftMs, check);
    else stop.abort(new Error(`the watch received nothing, not even a bookmark, for ${SILENCE_MS / 1000} s`));
  };
  let cancelCheck = clock.schedule(SILENCE_MS, check);
  let leave: Cancel = () => {};
  const alive = (): void => {
    aliveAtMs = clock.monotonic();
    options.alive();
  };
  const opened = (): void => {
    alive();
    leave = options.opened((error) => stop.abort(error));
  };
  try {
    await unlessAborted(readEvents({ ...options, alive, signal: stop.signal }, opened), stop.signal);
  } finally {
    cancelCheck();
    leave();
    signal.removeEventListener('abort', onAbort);
    stop.abort();
  }
}

/** Calls nothing after `signal` has aborted. */
async function readEvents(
  { transport, path, query, alive, event: onEvent, signal }: Omit<WatchSessionOptions, 'opened' | 'clock'>,
  onOpened: () => void,
): Promise<void> {
  const chunks = await transport.stream({ path, query, headTimeoutMs: HEAD_MS, signal });
  signal.throwIfAborted();
  onOpened();
  const decoder = new LineDecoder();
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    alive();
    for (const line of decoder.push(chunk)) {
      const event = parseWatchEvent(line);
      if (!event) throw new MalformedStreamError(`a watch line of ${line.length} characters is not an event`);
      if (event.type === 'ERROR') throw event.error;
      onEvent(event);
      signal.throwIfAborted();
    }
  }
}
