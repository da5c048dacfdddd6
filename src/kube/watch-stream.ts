import { LineDecoder } from './line-decoder.ts';
import type { Query, Transport } from './transport.ts';
import { parseWatchEvent, type WatchEvent } from './watch-event.ts';

/** Called in the order of the stream. */
export interface WatchStreamHandlers {
  /** The server has accepted the watch. */
  answered(): void;
  /** The server sent bytes, of any content. */
  alive(): void;
  event(event: WatchEvent): void;
  /** No other callback follows. `error`: absent if the server closed the stream without a fault. */
  ended(error?: unknown): void;
}

export interface WatchStreamSpec {
  readonly path: string;
  readonly query: Query;
  /** Limit for the server to accept the watch. */
  readonly headTimeoutMs: number;
}

/** A line is no event. The watch must restart from the last valid event. */
export class MalformedStreamError extends Error {
  override readonly name = 'MalformedStreamError';
}

/** The returned function closes the watch; no handler is called after that. */
export function openWatchStream(
  transport: Transport,
  spec: WatchStreamSpec,
  handlers: WatchStreamHandlers,
): () => void {
  const abort = new AbortController();
  const { signal } = abort;

  async function readEvents(): Promise<void> {
    const chunks = await transport.stream({ ...spec, signal });
    if (signal.aborted) return;
    handlers.answered();
    const decoder = new LineDecoder();
    for await (const chunk of chunks) {
      if (signal.aborted) return;
      handlers.alive();
      for (const line of decoder.push(chunk)) {
        const event = parseWatchEvent(line);
        if (!event) throw new MalformedStreamError(`a watch line of ${line.length} characters is not an event`);
        handlers.event(event);
        if (signal.aborted) return;
      }
    }
  }

  function end(error?: unknown): void {
    if (signal.aborted) return;
    abort.abort();
    handlers.ended(error);
  }

  readEvents().then(() => end(), end);
  return () => abort.abort();
}
