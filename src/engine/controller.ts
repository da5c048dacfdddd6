import { setMaxListeners } from 'node:events';
import type { Clock } from '../kit/clock.ts';
import { aborted } from '../kit/promises.ts';
import { type ControllerMetrics, noControllerMetrics } from '../observe/controller-metrics.ts';
import type { Log } from '../observe/log.ts';
import { Dispatcher } from './dispatcher.ts';
import type { QueueOptions } from './queue.ts';
import type { Reconciler } from './result.ts';
import type { Source } from './source.ts';

/** What a controller reconciles, how, and with how much concurrency. */
export interface ControllerOptions extends QueueOptions {
  /** Unique in the process. Log lines have it as the field `controller`. */
  readonly name: string;
  readonly sources: readonly Source[];
  readonly reconciler: Reconciler;
  readonly clock: Clock;
  readonly log: Log;
  /** Default: no metrics. */
  readonly metrics?: ControllerMetrics;
  /** Maximum number of reconciles at a time. Default 16. */
  readonly workers?: number;
  /**
   * Number of workers that the least urgent lane, the one with the highest number, may not use, so that they stay free for other lanes.
   * Default 0.
   */
  readonly reservedForUrgentLanes?: number;
  /**
   * Whether a key that becomes due in lane 0, the most urgent, aborts its own current reconcile if that runs in the least urgent lane.
   * Default false: the key waits until that reconcile ends.
   */
  readonly lane0Aborts?: boolean;
}

/**
 * Puts the keys of its sources into a queue, and calls the reconciler for each key that is due. Once `run` has settled, it may be called
 * again, and starts with an empty queue.
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
   * Starts the sources, calls `onSynced` once all have synced, then reconciles until `signal` aborts. Then resolves once the reconciles in
   * flight have settled. Rejects if a source fails to start before `signal` aborts.
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
    // A controller may have any number of sources, and each adds a listener.
    setMaxListeners(0, stop.signal);
    const onAbort = (): void => {
      stop.abort(signal.reason);
      // Stop the dispatcher synchronously, because no write may start after `signal` has aborted.
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

  /**
   * Lets `admit` (`QueueOptions`) decide again about every key that it refused. With `keys`: only about the refused keys in `keys`. Has no
   * effect while the controller does not run.
   */
  wake(keys?: Iterable<string>): void {
    this.#dispatcher?.queue.readmit(keys);
  }
}
