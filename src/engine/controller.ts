import { setMaxListeners } from 'node:events';
import { aborted } from '../kit/promises.ts';
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts';
import type { Source } from './source.ts';

export interface ControllerOptions extends DispatcherOptions {
  /** Unique in the process; the field `controller` of log lines. */
  readonly name: string;
  readonly sources: readonly Source[];
}

/**
 * Puts the keys of its sources into a queue, and calls the reconciler for each key that is due.
 *
 *   sources ─ add ─> KeyedQueue ─ take ─> Dispatcher ─ key ─> Reconciler
 *                       ^────────── Result: after, at, retry ───────────────┘
 *
 * After `run` has settled it may run again, with an empty queue.
 */
export class Controller {
  readonly name: string;
  readonly #options: ControllerOptions;

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /**
   * Calls `onSynced` once all sources have synced, then reconciles until `signal` aborts and the
   * last reconcile has settled. Rejects if a source fails to start.
   */
  async run(signal: AbortSignal, onSynced: () => void = () => {}): Promise<void> {
    const { sources } = this.#options;
    const log = this.#options.log.child({ controller: this.name });
    const dispatcher = new Dispatcher({ ...this.#options, log });
    const stop = new AbortController();
    // Each source adds a listener.
    setMaxListeners(0, stop.signal);
    const onAbort = (): void => {
      stop.abort(signal.reason);
      // Synchronously: no write may start after `signal` has aborted.
      void dispatcher.stop();
    };
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.all(sources.map((source) => source.start((...args) => dispatcher.queue.add(...args), stop.signal)));
      if (!signal.aborted) {
        dispatcher.open();
        log.info('synced', { sources: sources.map((source) => source.name) });
        onSynced();
      }
      await aborted(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      stop.abort();
      await dispatcher.stop();
    }
  }
}
