import { retryAfterMsOf } from '../kit/backoff.ts';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { pause, SLICE_MS } from '../kit/pace.ts';
import { type ControllerMetrics, noControllerMetrics, type ReconcileOutcome } from '../observe/controller-metrics.ts';
import type { Log } from '../observe/log.ts';
import { KeyedQueue, type QueueOptions, type TakenKey } from './queue.ts';
import { type Reconciler, type Result, retry } from './result.ts';

export interface DispatcherOptions extends QueueOptions {
  readonly clock: Clock;
  readonly reconciler: Reconciler;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  /** Reconciles at a time. Default 16. */
  readonly workers?: number;
  /** Workers that the least urgent lane (the highest number) may not use. Default 0. */
  readonly reservedForUrgentLanes?: number;
  /** A key that becomes due in lane 0 aborts its own reconcile in the least urgent lane. */
  readonly lane0Aborts?: boolean;
}

/** At least this is charged: only the part of a reconcile before its first `await` is measured. */
const MIN_CHARGE_MS = SLICE_MS / 256;

/** Passes due keys to the reconciler, some at a time, and schedules each by its result. */
export class Dispatcher {
  readonly queue: KeyedQueue;
  readonly #options: DispatcherOptions;
  readonly #metrics: ControllerMetrics;
  /** At most one for each key. */
  readonly #active = new Map<string, { readonly taken: TakenKey; readonly controller: AbortController }>();
  readonly #drained = Promise.withResolvers<void>();
  readonly #lastLane: number;
  /** Reconciles in flight from the least urgent lane. */
  #lastLaneActive = 0;
  #state: 'collecting' | 'open' | 'stopped' = 'collecting';
  #scheduled = false;
  /** Since the last pause. Reconciles that never wait would starve timers and sockets. */
  #busyMs = 0;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#metrics = options.metrics ?? noControllerMetrics;
    this.#lastLane = Math.max(1, options.lanes ?? 1) - 1;
    const onDueWhileRunning = (key: string, lane: number): void => {
      if (options.lane0Aborts && lane === 0) this.#abortIfLeastUrgent(key);
    };
    this.queue = new KeyedQueue(options.clock, () => this.#wake(), { ...options, onDueWhileRunning }, this.#metrics);
  }

  /** Until then the queue only collects keys, so that reconciles see complete stores. */
  open(): void {
    if (this.#state !== 'collecting') return;
    this.#state = 'open';
    this.#wake();
  }

  /** Aborts the reconciles in flight, and resolves when the last one has settled. */
  stop(): Promise<void> {
    this.#state = 'stopped';
    this.queue.close();
    for (const { controller } of this.#active.values()) controller.abort();
    if (this.#active.size === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  /**
   * In a microtask, so that lanes, not the order of adds, decide between keys added together; after
   * SLICE_MS of work, after a pause.
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
    const { clock, workers = 16, reservedForUrgentLanes = 0 } = this.#options;
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
    const { clock, reconciler } = this.#options;
    const controller = new AbortController();
    this.#addActive(taken, controller);
    const startedAt = clock.monotonic();
    let result: Result;
    try {
      result = await reconciler.reconcile(taken.key, controller.signal);
    } catch (error) {
      result = retry(error);
    }
    // The next reconcile reads the current state anyway.
    if (!controller.signal.aborted)
      this.#metrics.reconciled(this.#handleResult(taken, result), (clock.monotonic() - startedAt) / 1000);
    this.#removeActive(taken);
  }

  #addActive(taken: TakenKey, controller: AbortController): void {
    this.#active.set(taken.key, { taken, controller });
    if (taken.lane === this.#lastLane) this.#lastLaneActive += 1;
    this.#metrics.active(this.#active.size);
  }

  #abortIfLeastUrgent(key: string): void {
    const running = this.#active.get(key);
    if (running?.taken.lane === this.#lastLane) running.controller.abort();
  }

  #removeActive(taken: TakenKey): void {
    this.#active.delete(taken.key);
    if (taken.lane === this.#lastLane) this.#lastLaneActive -= 1;
    this.#metrics.active(this.#active.size);
    if (this.#state === 'stopped' && this.#active.size === 0) this.#drained.resolve();
    this.queue.done(taken.key);
    this.#wake();
  }

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

  /** In the key's lane: an urgent key that failed is still urgent. */
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
