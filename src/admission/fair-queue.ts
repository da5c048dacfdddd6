import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { RecentMap } from '../kit/recent-map.ts';

interface FairQueueOptions {
  readonly clock: Clock;
  /** Jobs that may wait. Default 1024. */
  readonly maxWaiting?: number;
}

/** Jobs run back to back for so long, milliseconds; then the process reads, writes and runs its timers. */
const SLICE_MS = 5;
/** After this long, half of what a source has used is forgotten. */
const HALF_LIFE_MS = 5_000;
/** Sources whose use is remembered. */
const MAX_SOURCES = 4096;

interface Job {
  readonly isLong: boolean;
  readonly run: () => void;
  readonly refuse: (error: CodedError) => void;
}

/** Processor time that a source had used at an instant (monotonic), milliseconds. */
interface Use {
  readonly ms: number;
  readonly atMs: number;
}

/**
 * Runs what costs processor time, one job at a time. While there is little to do, a job runs at once. When jobs have to wait, the next
 * one belongs to the source that has used the least time lately: who sends what is dear to read waits behind those who send little.
 * Of the jobs of one source, one that is expected to take longer than a slice waits until none of the others waits.
 */
export class FairQueue {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  readonly #used = new RecentMap<string, Use>(MAX_SOURCES);
  /** By source, oldest job first, long ones behind all others; no list is empty. */
  readonly #lines = new Map<string, Job[]>();
  #waiting = 0;
  #sliceMs = 0;
  #pausing = false;

  constructor({ clock, maxWaiting = 1024 }: FairQueueOptions) {
    this.#clock = clock;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Settles as `job` does. What the job awaits is neither counted nor waited for. Rejects with CodedError `Overloaded` when too many
   * jobs wait; it is the longest line that loses its newest job.
   * @param leastMs What the job counts for at least, milliseconds: for work that it only sets off, and for its place in line.
   */
  run<T>(source: string, job: () => T | Promise<T>, leastMs = 0): Promise<T> {
    if (this.#waiting === 0 && this.#sliceMs < SLICE_MS) return this.#measured(source, job, leastMs);
    return new Promise<T>((resolve, reject) => {
      const run = (): void => resolve(this.#measured(source, job, leastMs));
      this.#enqueue(this.#line(source), { isLong: leastMs > SLICE_MS, run, refuse: reject });
      this.#waiting++;
      if (this.#waiting > this.#maxWaiting) this.#shorten();
    });
  }

  #enqueue(line: Job[], job: Job): void {
    const firstLong = job.isLong ? -1 : line.findIndex(({ isLong }) => isLong);
    if (firstLong < 0) line.push(job);
    else line.splice(firstLong, 0, job);
  }

  async #measured<T>(source: string, job: () => T | Promise<T>, leastMs: number): Promise<T> {
    const startMs = this.#clock.monotonic();
    try {
      // Not awaited: only what runs here and now is measured.
      return job();
    } finally {
      const nowMs = this.#clock.monotonic();
      this.#charge(source, Math.max(nowMs - startMs, leastMs), nowMs);
    }
  }

  #charge(source: string, ms: number, atMs: number): void {
    const used = this.#usedBy(source, atMs) + ms;
    this.#used.set(source, { ms: used, atMs });
    this.#sliceMs += ms;
    this.#pause();
  }

  /** Ends the slice once the process has read, written, and run its timers. */
  #pause(): void {
    if (this.#pausing) return;
    this.#pausing = true;
    this.#clock.schedule(0, () => {
      this.#pausing = false;
      this.#sliceMs = 0;
      while (this.#waiting > 0 && this.#sliceMs < SLICE_MS) this.#next()?.run();
    });
  }

  #next(): Job | undefined {
    const nowMs = this.#clock.monotonic();
    let least: { readonly source: string; readonly ms: number } | undefined;
    for (const source of this.#lines.keys()) {
      const ms = this.#usedBy(source, nowMs);
      if (!least || ms < least.ms) least = { source, ms };
    }
    return least && this.#take(least.source, (line) => line.shift());
  }

  #shorten(): void {
    let longest: { readonly source: string; readonly length: number } | undefined;
    for (const [source, { length }] of this.#lines) {
      if (!longest || length > longest.length) longest = { source, length };
    }
    const newest = longest && this.#take(longest.source, (line) => line.pop());
    newest?.refuse(new CodedError('Overloaded', 'too many reviews are waiting; try again'));
  }

  #usedBy(source: string, nowMs: number): number {
    const use = this.#used.get(source);
    return use ? use.ms * 2 ** ((use.atMs - nowMs) / HALF_LIFE_MS) : 0;
  }

  #line(source: string): Job[] {
    const line = this.#lines.get(source) ?? [];
    this.#lines.set(source, line);
    return line;
  }

  #take(source: string, from: (line: Job[]) => Job | undefined): Job | undefined {
    const line = this.#line(source);
    const job = from(line);
    if (job) this.#waiting--;
    if (line.length === 0) this.#lines.delete(source);
    return job;
  }
}
