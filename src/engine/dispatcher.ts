import { retryAfterMsOf } from '../kit/backoff.ts';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { pause, SLICE_MS } from '../kit/pace.ts';
import { deferred } from '../kit/promises.ts';
import type { ControllerMetrics, ReconcileOutcome } from '../observe/controller-metrics.ts';
import type { Log } from '../observe/log.ts';
import { KeyedQueue, type QueueOptions, type TakenKey } from './queue.ts';
import { type Reconciler, type Result, retry } from './result.ts';

/** As `ControllerOptions`, with its defaults filled in. */
export interface DispatcherOptions extends QueueOptions {
  readonly clock: Clock;
  readonly reconciler: Reconciler;
  readonly log: Log;
  readonly metrics: ControllerMetrics;
  readonly workers: number;
  readonly reservedForUrgentLanes: number;
  readonly lane0Aborts: boolean;
}

/**
 * Each reconcile counts as at least this long, milliseconds, because the dispatcher measures only the part of a reconcile before its first
 * `await`.
 */
const MIN_CHARGE_MS = SLICE_MS / 256;

/** Passes the keys of one queue to the reconciler, with bounded concurrency, and schedules each key by its result. */
export class Dispatcher {
  readonly queue: KeyedQueue;
  readonly #options: DispatcherOptions;
  /** By key: its reconcile in flight; at most one. */
  readonly #active = new Map<string, { readonly taken: TakenKey; readonly controller: AbortController }>();
  readonly #drained = deferred();
  /** The least urgent lane. */
  readonly #lastLane: number;
  /** Number of reconciles in flight whose keys come from the least urgent lane. */
  #lastLaneActive = 0;
  #state: 'collecting' | 'open' | 'stopped' = 'collecting';
  /** Whether a call of `#dispatch` is scheduled. */
  #scheduled = false;
  /**
   * Processor time of reconciles since the last pause, milliseconds. From SLICE_MS on, the dispatcher pauses, because reconciles that never
   * wait would starve timers and sockets.
   */
  #busyMs = 0;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#lastLane = Math.max(1, options.lanes ?? 1) - 1;
    const onDueWhileRunning = (key: string, lane: number): void => {
      if (options.lane0Aborts && lane === 0) this.#abortIfLeastUrgent(key);
    };
    this.queue = new KeyedQueue(options.clock, () => this.#wake(), { ...options, onDueWhileRunning }, options.metrics);
  }

  /** Starts dispatching. Before this call, the queue only collects keys, so that the first reconciles see complete stores. */
  open(): void {
    if (this.#state !== 'collecting') return;
    this.#state = 'open';
    this.#wake();
  }

  /** Stops dispatching, aborts the signals of the reconciles in flight, and resolves when the last one has settled. */
  stop(): Promise<void> {
    this.#state = 'stopped';
    this.queue.close();
    for (const { controller } of this.#active.values()) controller.abort();
    if (this.#active.size === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  /**
   * Schedules `#dispatch`. Normally in a microtask, so that the lane decides between keys that are added together, and not the order of the
   * adds. If the reconciles since the last pause took SLICE_MS, after another pause.
   */
  #wake(): void {
    if (this.#state !== 'open' || this.#scheduled) return;
    this.#scheduled = true;
    const dispatch = (): void => {
      this.#scheduled = false;
      this.#dispatch();
    };
    if (this.#busyMs < SLICE_MS) {
      queueMicrotask(dispatch);
    } else {
      this.#busyMs = 0;
      void pause(this.#options.clock).then(dispatch);
    }
  }

  #dispatch(): void {
    const { clock, workers, reservedForUrgentLanes } = this.#options;
    const lastLaneWorkers = workers - reservedForUrgentLanes;
    while (this.#state === 'open' && this.#active.size < workers) {
      if (this.#busyMs >= SLICE_MS) {
        this.#wake();
        return;
      }
      const taken = this.queue.take(this.#lastLaneActive < lastLaneWorkers ? this.#lastLane : this.#lastLane - 1);
      if (!taken) return;
      const startMs = clock.monotonic();
      void this.#reconcile(taken);
      this.#busyMs += Math.max(clock.monotonic() - startMs, MIN_CHARGE_MS);
    }
  }

  async #reconcile(taken: TakenKey): Promise<void> {
    const { clock, metrics, reconciler } = this.#options;
    const controller = new AbortController();
    this.#addActive(taken, controller);
    const startedAt = clock.monotonic();
    let result: Result;
    try {
      result = await reconciler.reconcile(taken.key, controller.signal);
    } catch (error) {
      result = retry(error);
    }
    // The result of an aborted reconcile does not count; the next reconcile reads the current state anyway.
    if (!controller.signal.aborted)
      metrics.reconciled(this.#handleResult(taken, result), (clock.monotonic() - startedAt) / 1000);
    this.#removeActive(taken);
  }

  #addActive(taken: TakenKey, controller: AbortController): void {
    this.#active.set(taken.key, { taken, controller });
    if (taken.lane === this.#lastLane) this.#lastLaneActive += 1;
    this.#options.metrics.active(this.#active.size);
  }

  /** Aborts the current reconcile of the key if it runs in the least urgent lane. */
  #abortIfLeastUrgent(key: string): void {
    const running = this.#active.get(key);
    if (running?.taken.lane === this.#lastLane) running.controller.abort();
  }

  #removeActive(taken: TakenKey): void {
    this.#active.delete(taken.key);
    if (taken.lane === this.#lastLane) this.#lastLaneActive -= 1;
    this.#options.metrics.active(this.#active.size);
    if (this.#state === 'stopped' && this.#active.size === 0) this.#drained.resolve();
    this.queue.done(taken.key);
    this.#wake();
  }

  /** Schedules the key by the result of its reconcile. */
  #handleResult(taken: TakenKey, result: Result): ReconcileOutcome {
    const { log } = this.#options;
    const { queue } = this;
    const { key } = taken;
    if (result.kind === 'retry') return this.#retry(taken, result.cause, result.isConflict);
    if (result.kind === 'at' && Number.isNaN(result.atMs))
      return this.#retry(taken, 'the reconciler returned an invalid time');
    queue.forget(key);
    switch (result.kind) {
      case 'done':
        return 'success';
      case 'notReady':
        log.debug('waiting', { key, missing: result.missing });
        return 'success';
      case 'after':
        queue.addAfter(key, 'after', result.delayMs);
        return 'requeue_after';
      case 'at':
        queue.add(key, 'at', result.lane === undefined ? { atMs: result.atMs } : result);
        return 'requeue_after';
    }
  }

  /** Keeps the key's lane, because an urgent key that failed is still urgent. */
  #retry({ key, lane, reasons }: TakenKey, cause: unknown, isConflict = false): ReconcileOutcome {
    const isRepeated = this.queue.hasFailed(key);
    const delayMs = this.queue.retry(key, 'retry', lane, retryAfterMsOf(cause));
    const fields = { key, reasons, error: describe(cause), retryInMs: Math.round(delayMs) };
    if (isConflict && !isRepeated) {
      this.#options.log.debug('reconcile again after a conflict', fields);
      return 'requeue_after';
    }
    this.#options.log.warn('reconcile failed', fields);
    return 'error';
  }
}
