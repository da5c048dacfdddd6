import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { pause, SLICE_MS } from '../kit/pace.ts';
import { RecentMap } from '../kit/recent-map.ts';

interface FairQueueOptions {
  readonly clock: Clock;
  /** Maximum number of waiting jobs. Default 1024. */
  readonly maxWaiting?: number;
}

/** The recorded usage of a source halves in this time. */
const HALF_LIFE_MS = 5_000;
/** Maximum number of sources with recorded usage; the queue forgets the one that ran a job longest ago. */
const MAX_SOURCES = 4096;

/** A task that waits for processor time. */
interface Job {
  readonly isLong: boolean;
  readonly run: () => void;
  readonly reject: (error: CodedError) => void;
}

/** Processor time of a source, milliseconds, at an instant of the monotonic clock. */
interface Usage {
  readonly ms: number;
  readonly atMs: number;
}

/**
 * Runs jobs that need the processor, one at a time, and pauses after each slice of 5 ms for other work of the process. If no job waits and
 * the slice is not used up, a new job runs at once. Otherwise, the next job is one of the source (client address) with the lowest recorded
 * usage, so sources of costly calls wait behind the others. Within a source, jobs that are expected to take longer than a slice wait behind
 * all others.
 */
export class FairQueue {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  readonly #usage = new RecentMap<string, Usage>(MAX_SOURCES);
  /** Waiting jobs by source, oldest first, long ones after all others. No list is empty. */
  readonly #jobs = new Map<string, Job[]>();
  #waiting = 0;
  #sliceMs = 0;
  #pausing = false;

  constructor({ clock, maxWaiting = 1024 }: FairQueueOptions) {
    this.#clock = clock;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Settles as `job` does. The queue measures only the synchronous part of the job and does not wait for the rest. If too many jobs wait,
   * the source with the most loses its last one, which rejects with CodedError `Overloaded`: the newest long job, or else the newest job.
   * @param leastMs Minimum usage to charge, milliseconds. It covers work that the job only starts. Above 5 ms, the job is long.
   */
  run<T>(source: string, job: () => T | Promise<T>, leastMs = 0): Promise<T> {
    if (this.#waiting === 0 && this.#sliceMs < SLICE_MS) return this.#runMeasured(source, job, leastMs);
    return new Promise<T>((resolve, reject) => {
      const run = (): void => resolve(this.#runMeasured(source, job, leastMs));
      this.#insert(this.#jobsOf(source), { isLong: leastMs > SLICE_MS, run, reject });
      this.#waiting++;
      if (this.#waiting > this.#maxWaiting) this.#rejectNewest();
    });
  }

  #insert(jobs: Job[], job: Job): void {
    const firstLong = job.isLong ? -1 : jobs.findIndex(({ isLong }) => isLong);
    if (firstLong < 0) jobs.push(job);
    else jobs.splice(firstLong, 0, job);
  }

  async #runMeasured<T>(source: string, job: () => T | Promise<T>, leastMs: number): Promise<T> {
    const startMs = this.#clock.monotonic();
    try {
      // Not awaited: only the synchronous part is measured.
      return job();
    } finally {
      const nowMs = this.#clock.monotonic();
      this.#charge(source, Math.max(nowMs - startMs, leastMs), nowMs);
    }
  }

  #charge(source: string, ms: number, atMs: number): void {
    const used = this.#usageOf(source, atMs) + ms;
    this.#usage.set(source, { ms: used, atMs });
    this.#sliceMs += ms;
    this.#pause();
  }

  /** Ends the slice: pauses, then runs waiting jobs in a new slice. */
  #pause(): void {
    if (this.#pausing) return;
    this.#pausing = true;
    void pause(this.#clock).then(() => this.#runSlice());
  }

  #runSlice(): void {
    this.#pausing = false;
    this.#sliceMs = 0;
    while (this.#waiting > 0 && this.#sliceMs < SLICE_MS) this.#next()?.run();
  }

  #next(): Job | undefined {
    const nowMs = this.#clock.monotonic();
    let least: { readonly source: string; readonly ms: number } | undefined;
    for (const source of this.#jobs.keys()) {
      const ms = this.#usageOf(source, nowMs);
      if (!least || ms < least.ms) least = { source, ms };
    }
    return least && this.#remove(least.source, (jobs) => jobs.shift());
  }

  #rejectNewest(): void {
    let longest: { readonly source: string; readonly length: number } | undefined;
    for (const [source, { length }] of this.#jobs) {
      if (!longest || length > longest.length) longest = { source, length };
    }
    const newest = longest && this.#remove(longest.source, (jobs) => jobs.pop());
    newest?.reject(new CodedError('Overloaded', 'the queue of reviews is full; try again'));
  }

  #usageOf(source: string, nowMs: number): number {
    const usage = this.#usage.get(source);
    return usage ? usage.ms * 2 ** ((usage.atMs - nowMs) / HALF_LIFE_MS) : 0;
  }

  #jobsOf(source: string): Job[] {
    const jobs = this.#jobs.get(source) ?? [];
    this.#jobs.set(source, jobs);
    return jobs;
  }

  #remove(source: string, pick: (jobs: Job[]) => Job | undefined): Job | undefined {
    const jobs = this.#jobsOf(source);
    const job = pick(jobs);
    if (job) this.#waiting--;
    if (jobs.length === 0) this.#jobs.delete(source);
    return job;
  }
}
