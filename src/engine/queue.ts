import { backoffMs } from '../kit/backoff.ts';
import type { Cancel, Clock } from '../kit/clock.ts';
import { DeadlineHeap } from '../kit/deadline-heap.ts';
import { type ControllerMetrics, noControllerMetrics } from '../observe/controller-metrics.ts';
import type { EmitOptions } from './source.ts';

export interface QueueOptions {
  /** Served in order from 0. Default 1. */
  readonly lanes?: number;
  /** Called when a key that is being processed becomes due again. `lane`: where it will wait. */
  readonly onDueWhileRunning?: (key: string, lane: number) => void;
  /** Of `retry`, milliseconds. Default base 100, cap 30000. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number };
  /** Uniform in [0, 1). */
  readonly random?: () => number;
}

export interface TakenKey {
  readonly key: string;
  readonly lane: number;
  /** The first 8, without duplicates. */
  readonly reasons: readonly string[];
}

/** Added, and not taken yet. */
interface Pending {
  readonly key: string;
  lane: number;
  readonly reasons: string[];
  /** Monotonic milliseconds. */
  dueAt: number;
  /** Epoch ms. The key is due when either clock shows its instant. */
  wallAt: number;
}

const MAX_REASONS = 8;

/** Timers do not notice when the wall clock jumps: keys become due within this time. */
const WALL_CHECK_MS = 500;

/**
 * Keys that wait for a worker. Lane 0 goes first, in a lane the key that has been due longest.
 *
 *   add ─> delayed ─> due (in a lane) ─ take ─> running ─ done
 *                                                  └ added meanwhile: due again after `done`
 *
 * A key for a wall-clock instant also becomes due after the delay that remained at the add, so that
 * setting the clock back never lengthens a wait.
 */
export class KeyedQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #metrics: ControllerMetrics;
  readonly #onDueWhileRunning: (key: string, lane: number) => void;
  readonly #backoff: { readonly baseMs: number; readonly capMs: number };
  readonly #random: () => number;

  /** Not due yet (in #delays), due (in a lane), or waiting for their own current run. */
  readonly #pending = new Map<string, Pending>();
  readonly #running = new Set<string>();
  readonly #delays = new DeadlineHeap<string>();
  readonly #wallDeadlines = new DeadlineHeap<string>();
  readonly #lanes: readonly DeadlineHeap<string>[];
  /** Failures since the last `forget`. */
  readonly #failures = new Map<string, number>();
  /** `at`: when it fires, monotonic milliseconds. */
  #timer: { readonly at: number; readonly cancel: Cancel } | undefined;
  #closed = false;

  /** `onReady` is called synchronously whenever `take` may return a key. */
  constructor(
    clock: Clock,
    onReady: () => void,
    options: QueueOptions = {},
    metrics: ControllerMetrics = noControllerMetrics,
  ) {
    this.#clock = clock;
    this.#onReady = onReady;
    this.#metrics = metrics;
    this.#onDueWhileRunning = options.onDueWhileRunning ?? (() => {});
    this.#backoff = options.backoff ?? { baseMs: 100, capMs: 30_000 };
    this.#random = options.random ?? Math.random;
    this.#lanes = Array.from({ length: Math.max(1, options.lanes ?? 1) }, () => new DeadlineHeap<string>());
  }

  /** Due keys, also those that wait for their own run. */
  get depth(): number {
    return this.#pending.size - this.#delays.size;
  }

  /** Keys that are not due yet. */
  get delayed(): number {
    return this.#delays.size;
  }

  /**
   * Due now, at `atMs`, or after `delayMs`, which wins. Default lane: the last. Of several adds,
   * the earliest time and the most urgent lane count.
   */
  add(key: string, reason: string, { lane, atMs, delayMs }: EmitOptions = {}): void {
    if (delayMs !== undefined) {
      this.addAfter(key, reason, delayMs, lane);
      return;
    }
    const leftMs = atMs === undefined ? 0 : atMs - this.#clock.now();
    if (leftMs > 0) this.#merge(key, reason, lane, this.#clock.monotonic() + leftMs, atMs);
    else this.#merge(key, reason, lane, this.#clock.monotonic());
  }

  /** In monotonic time. */
  addAfter(key: string, reason: string, delayMs: number, lane?: number): void {
    this.#merge(key, reason, lane, this.#clock.monotonic() + Math.max(0, delayMs));
  }

  /**
   * Counts a failure, and adds the key after its backoff or `minDelayMs`, whichever is longer.
   * Returns that delay; an earlier add of the key during its run wins.
   */
  retry(key: string, reason: string, lane?: number, minDelayMs = 0): number {
    const attempt = this.#failures.get(key) ?? 0;
    this.#failures.set(key, attempt + 1);
    const delayMs = Math.max(minDelayMs, backoffMs({ ...this.#backoff, attempt, random: this.#random }));
    this.#metrics.retried();
    this.addAfter(key, reason, delayMs, lane);
    return delayMs;
  }

  /** Since the last `forget`. */
  hasFailed(key: string): boolean {
    return this.#failures.has(key);
  }

  /** The next backoff starts from the base. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** The next due key of lanes 0 to `lastLane`. Call `done` after processing it. */
  take(lastLane: number = this.#lanes.length - 1): TakenKey | undefined {
    for (const lane of this.#lanes.slice(0, lastLane + 1)) {
      const first = lane.peek();
      if (!first) continue;
      lane.delete(first.key);
      return this.#start(first.key);
    }
    return undefined;
  }

  /** If the key was added meanwhile, it can run again. */
  done(key: string): void {
    if (!this.#running.delete(key)) return;
    const pending = this.#pending.get(key);
    if (pending) this.#place(pending);
  }

  /** Also ignores further adds. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#pending.clear();
    this.#delays.clear();
    this.#metrics.depth(0);
  }

  #merge(
    key: string,
    reason: string,
    lane: number | undefined,
    dueAt: number,
    wallAt = Number.POSITIVE_INFINITY,
  ): void {
    if (this.#closed) return;
    this.#metrics.added();
    const clampedLane = Math.max(0, Math.min(lane ?? this.#lanes.length - 1, this.#lanes.length - 1));
    let pending = this.#pending.get(key);
    if (!pending) {
      pending = { key, lane: clampedLane, reasons: [reason], dueAt, wallAt };
      this.#pending.set(key, pending);
    } else {
      if (clampedLane < pending.lane) {
        this.#lanes[pending.lane]?.delete(key);
        pending.lane = clampedLane;
      }
      if (pending.reasons.length < MAX_REASONS && !pending.reasons.includes(reason)) pending.reasons.push(reason);
      pending.dueAt = Math.min(pending.dueAt, dueAt);
      pending.wallAt = Math.min(pending.wallAt, wallAt);
    }
    this.#place(pending);
  }

  /** In #delays until it is due, then in a lane, or behind its own current run. */
  #place(pending: Pending): void {
    const { key, lane, wallAt } = pending;
    const monotonic = this.#clock.monotonic();
    if (pending.dueAt > monotonic && wallAt > this.#clock.now()) {
      this.#delays.set(key, pending.dueAt);
      if (wallAt !== Number.POSITIVE_INFINITY) this.#wallDeadlines.set(key, wallAt);
      this.#setTimer();
      return;
    }
    this.#delays.delete(key);
    this.#wallDeadlines.delete(key);
    pending.dueAt = Math.min(pending.dueAt, monotonic);
    this.#metrics.depth(this.depth);
    if (this.#running.has(key)) {
      this.#onDueWhileRunning(key, lane);
      return;
    }
    const ready = this.#lanes[lane];
    // Setting the key again would move it behind others with the same time.
    if (ready?.get(key) !== pending.dueAt) ready?.set(key, pending.dueAt);
    this.#onReady();
  }

  #start(key: string): TakenKey | undefined {
    const pending = this.#pending.get(key);
    if (!pending) return undefined;
    this.#pending.delete(key);
    this.#running.add(key);
    this.#metrics.depth(this.depth);
    this.#metrics.waited((this.#clock.monotonic() - pending.dueAt) / 1000);
    return { key, lane: pending.lane, reasons: pending.reasons };
  }

  /** If it fires before a key is due, `#onTimer` sets it again. */
  #setTimer(): void {
    const delay = this.#delays.peek();
    if (!delay) return;
    const deadline = this.#wallDeadlines.peek();
    const monotonic = this.#clock.monotonic();
    const wallMs = deadline ? Math.min(deadline.at - this.#clock.now(), WALL_CHECK_MS) : Number.POSITIVE_INFINITY;
    const at = Math.min(delay.at, monotonic + Math.max(0, wallMs));
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.cancel();
    this.#timer = { at, cancel: this.#clock.schedule(at - monotonic, () => this.#onTimer()) };
  }

  #onTimer(): void {
    this.#timer = undefined;
    const due = new Set([
      ...this.#delays.popDue(this.#clock.monotonic()),
      ...this.#wallDeadlines.popDue(this.#clock.now()),
    ]);
    for (const key of due) {
      const pending = this.#pending.get(key);
      if (pending) this.#place(pending);
    }
    this.#setTimer();
  }
}
