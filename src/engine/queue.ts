import { backoffMs } from '../kit/backoff.ts';
import type { Cancel, Clock } from '../kit/clock.ts';
import { DeadlineHeap } from '../kit/deadline-heap.ts';
import { type ControllerMetrics, noControllerMetrics } from '../observe/controller-metrics.ts';
import type { EmitOptions } from './source.ts';

/** Options of a queue: its lanes, which keys may run, and its backoff. */
export interface QueueOptions {
  /** Number of priority lanes, served in order from 0. Default 1. */
  readonly lanes?: number;
  /** Decides whether a due key may run. A refused key waits until `readmit()` or its next add. Default: every key may run. */
  readonly admit?: (key: string) => boolean;
  /**
   * Called when a key that a worker still processes becomes due again, and at each further add of that key. `lane`: where the key will
   * wait.
   */
  readonly onDueWhileRunning?: (key: string, lane: number) => void;
  /** Delays of `retry`, milliseconds. Default base 100, cap 30000. */
  readonly backoff?: { readonly baseMs: number; readonly capMs: number };
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** A key that a worker processes. */
export interface TakenKey {
  readonly key: string;
  readonly lane: number;
  /** Reasons without duplicates; at most the first 8. */
  readonly reasons: readonly string[];
}

/** A key that was added and that no worker has taken yet. */
interface Pending {
  readonly key: string;
  lane: number;
  readonly reasons: string[];
  /** When the key is due, or became due: milliseconds on the monotonic clock. */
  dueAt: number;
  /**
   * When the key is also due: epoch ms on the wall clock. The key is due when either clock shows its instant. Infinity: `dueAt` alone
   * counts.
   */
  wallAt: number;
}

/** Maximum number of reasons that the queue keeps for a pending key. */
const MAX_REASONS = 8;

/**
 * Timers run on monotonic time and do not notice when the wall clock is set forward. While a key waits for a wall-clock instant, no timer
 * is longer than this, so keys become due within half a second of a jump.
 */
const WALL_CHECK_MS = 500;

/**
 * Keys that wait for a worker. One worker at a time processes a key; adds that arrive meanwhile merge into one more run. Lane 0 goes first,
 * and within a lane the key that has been due longest. A key that is added for a wall-clock instant is due when the wall clock shows that
 * instant, but at the latest after the delay that remained at the add, so that setting the clock back never lengthens a wait.
 */
export class KeyedQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #metrics: ControllerMetrics;
  readonly #admit: ((key: string) => boolean) | undefined;
  readonly #onDueWhileRunning: (key: string, lane: number) => void;
  readonly #backoff: { readonly baseMs: number; readonly capMs: number };
  readonly #random: () => number;

  /** Every pending key: not due yet (in #delays), due (in a lane), refused, or due and waiting for its own current run. */
  readonly #pending = new Map<string, Pending>();
  readonly #running = new Set<string>();
  readonly #delays = new DeadlineHeap<string>();
  readonly #wallDeadlines = new DeadlineHeap<string>();
  readonly #lanes: readonly DeadlineHeap<string>[];
  /** Due keys that `admit` refused. */
  readonly #refused = new Set<string>();
  /** By key: number of failures since the last `forget`. */
  readonly #failures = new Map<string, number>();
  /** `at`: when the timer fires, milliseconds on the monotonic clock. */
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
    this.#admit = options.admit;
    this.#onDueWhileRunning = options.onDueWhileRunning ?? (() => {});
    this.#backoff = options.backoff ?? { baseMs: 100, capMs: 30_000 };
    this.#random = options.random ?? Math.random;
    this.#lanes = Array.from({ length: Math.max(1, options.lanes ?? 1) }, () => new DeadlineHeap<string>());
  }

  /** The number of keys that are due: they wait for a worker or for their own current run, or `admit` refused them. */
  get depth(): number {
    return this.#pending.size - this.#delays.size;
  }

  /** The number of keys that are not due yet. */
  get delayed(): number {
    return this.#delays.size;
  }

  /**
   * Adds a key, due now, at `atMs`, or after `delayMs`, which overrides `atMs`. Default lane: the last. Of several adds, the earliest time
   * and the most urgent lane count.
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

  /** Adds a key, due after `delayMs` of monotonic time. */
  addAfter(key: string, reason: string, delayMs: number, lane?: number): void {
    this.#merge(key, reason, lane, this.#clock.monotonic() + Math.max(0, delayMs));
  }

  /**
   * Counts a failure and adds the key, due after its next backoff or after `minDelayMs` (milliseconds, default 0), whichever is longer. If
   * the key was added during its run, the earlier time counts. Returns the delay, milliseconds.
   */
  retry(key: string, reason: string, lane?: number, minDelayMs = 0): number {
    const attempt = this.#failures.get(key) ?? 0;
    this.#failures.set(key, attempt + 1);
    const delayMs = Math.max(minDelayMs, backoffMs({ ...this.#backoff, attempt, random: this.#random }));
    this.#metrics.retried();
    this.addAfter(key, reason, delayMs, lane);
    return delayMs;
  }

  /** Whether the key has failed since the last `forget`. */
  hasFailed(key: string): boolean {
    return this.#failures.has(key);
  }

  /** Resets the failures of the key: its next backoff starts from the base. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /**
   * Returns the next due key of the lanes 0 to `lastLane` (default: all lanes) that `admit` allows; undefined if there is none. The caller
   * processes the key, and then calls `done`.
   */
  take(lastLane: number = this.#lanes.length - 1): TakenKey | undefined {
    for (const lane of this.#lanes.slice(0, lastLane + 1)) {
      for (let first = lane.peek(); first; first = lane.peek()) {
        lane.delete(first.key);
        if (this.#admit && !this.#admit(first.key)) {
          this.#refused.add(first.key);
          continue;
        }
        return this.#start(first.key);
      }
    }
    return undefined;
  }

  /** Ends the processing of the key. If the key was added meanwhile, it can run again. */
  done(key: string): void {
    if (!this.#running.delete(key)) return;
    const pending = this.#pending.get(key);
    if (pending) this.#place(pending);
  }

  /**
   * Makes the keys that `admit` refused ready again. With `keys`: only the refused keys in `keys`. The next `take` that reaches such a key
   * calls `admit` for it.
   */
  readmit(keys: Iterable<string> = this.#refused): void {
    for (const key of [...keys]) {
      const pending = this.#refused.has(key) ? this.#pending.get(key) : undefined;
      if (pending) this.#place(pending);
    }
  }

  /** Drops every pending key and ignores further adds. */
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

  /** Puts the key where it waits: in #delays until it is due, then in a lane, or behind its own current run. */
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
    this.#refused.delete(key);
    const ready = this.#lanes[lane];
    // Setting the key again would move it behind other keys with the same time.
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

  /** Sets the timer of the queue to the earliest key. If the timer fires before a key is due, `#onTimer` sets it again. */
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
