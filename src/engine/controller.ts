import { setMaxListeners } from 'node:events';
import type { Clock } from '../kit/clock.ts';
import { aborted } from '../kit/promises.ts';
import { type ControllerMetrics, noControllerMetrics } from '../observe/controller-metrics.ts';
import type { Log } from '../observe/log.ts';
import { Dispatcher } from './dispatcher.ts';
import type { QueueOptions } from './queue.ts';
import type { Reconciler } from './result.ts';
import type { Source } from './source.ts';

export interface ControllerOptions extends QueueOptions {
  /** Unique in the process; the field `controller` of log lines. */
  readonly name: string;
  readonly sources: readonly Source[];
  readonly reconciler: Reconciler;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  /** Reconciles at a time. Default 16. */
  readonly workers?: number;
  /** Workers that the least urgent lane (the highest number) may not use. Default 0. */
  readonly reservedForUrgentLanes?: number;
  /** A key that becomes due in lane 0 aborts its own reconcile in the least urgent lane. */
  readonly lane0Aborts?: boolean;
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
  #dispatcher: Dispatcher | undefined;

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /**
   * Calls `onSynced` once all sources have synced, then reconciles until `signal` aborts and the
   * last reconcile has settled. Rejects if a source fails to start.
   */
  async run(signal: AbortSignal, onSynced: () => void = () => {}): Promise<void> {
    const {
      clock,
      reconciler,
      sources,
      workers = 16,
      reservedForUrgentLanes = 0,
      lane0Aborts = false,
      metrics = noControllerMetrics,
    } = this.#options;
    const log = this.#options.log.child({ controller: this.name });
    const dispatcher = new Dispatcher({
      ...this.#options,
      clock,
      reconciler,
      log,
      metrics,
      workers,
      reservedForUrgentLanes,
      lane0Aborts,
    });
    this.#dispatcher = dispatcher;
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
      if (this.#dispatcher === dispatcher) this.#dispatcher = undefined;
    }
  }

  /** Lets `admit` decide again about refused keys, or about those among `keys`. */
  wake(keys?: Iterable<string>): void {
    this.#dispatcher?.queue.readmit(keys);
  }
}
