import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { pause, SLICE_MS } from '../kit/pace.ts';
import { RecentMap } from '../kit/recent-map.ts';

interface FairQueueOptions {
  readonly clock: Clock;
  /** Default 1024. */
  readonly maxWaiting?: number;
}

/** Of recorded usage. */
const HALF_LIFE_MS = 5_000;
/** The queue forgets the source or tenant that ran a job longest ago. */
const MAX_USAGES = 4096;

interface JobOptions {
  /** Tenants share the processor time of their source. Default: no tenant. */
  readonly tenant?: string;
  /** Minimum charge, milliseconds, for a costly job or later work. Above 5 ms, the job is long. */
  readonly leastMs?: number;
  /** If it aborts before the job starts, the job leaves the queue and rejects with the reason. */
  readonly signal?: AbortSignal;
}

interface Job {
  readonly isLong: boolean;
  readonly run: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Milliseconds of a source or tenant, at an instant of the monotonic clock. */
interface Usage {
  readonly ms: number;
  readonly atMs: number;
}

/**
 * Runs jobs one at a time, with a pause after each slice of 5 ms. If jobs wait, the source (client
 * address) and tenant with the lowest usage is next, so costly callers wait behind the others.
 * Within a tenant, long jobs come last.
 */
export class FairQueue {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  /** By source, and by `tenantKey` for jobs with a tenant. */
  readonly #usage = new RecentMap<string, Usage>(MAX_USAGES);
  /** By source and tenant, oldest first, long ones last. No inner map and no list is empty. */
  readonly #jobs = new Map<string, Map<string, Job[]>>();
  #waiting = 0;
  #sliceMs = 0;
  #pausing = false;

  constructor({ clock, maxWaiting = 1024 }: FairQueueOptions) {
    this.#clock = clock;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Measures only the synchronous part of `job`. Above `maxWaiting`, the newest job of the busiest
   * tenant of the busiest source rejects with CodedError `Overloaded`, a long one first.
   */
  run<T>(source: string, job: () => T | Promise<T>, options: JobOptions = {}): Promise<T> {
    const { tenant = '', leastMs = 0, signal } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const runMeasured = (): Promise<T> => this.#runMeasured(source, tenant, job, leastMs);
    if (this.#waiting === 0 && this.#sliceMs < SLICE_MS) return runMeasured();
    return new Promise<T>((resolve, reject) => {
      const waiting: Job = { isLong: leastMs > SLICE_MS, run: () => resolve(runMeasured()), reject };
      this.#insert(source, tenant, waiting);
      signal?.addEventListener('abort', () => this.#withdraw(source, tenant, waiting, signal.reason), { once: true });
      if (this.#waiting > this.#maxWaiting) this.#rejectNewest();
    });
  }

  #insert(source: string, tenant: string, job: Job): void {
    const tenants = this.#tenantsOf(source);
    const jobs = tenants.get(tenant) ?? [];
    this.#jobs.set(source, tenants.set(tenant, jobs));
    const firstLong = job.isLong ? -1 : jobs.findIndex(({ isLong }) => isLong);
    if (firstLong < 0) jobs.push(job);
    else jobs.splice(firstLong, 0, job);
    this.#waiting++;
  }

  #withdraw(source: string, tenant: string, job: Job, reason: unknown): void {
    const index = this.#tenantsOf(source).get(tenant)?.indexOf(job) ?? -1;
    if (index >= 0) this.#remove(source, tenant, (jobs) => jobs.splice(index, 1)[0])?.reject(reason);
  }

  async #runMeasured<T>(source: string, tenant: string, job: () => T | Promise<T>, leastMs: number): Promise<T> {
    const startMs = this.#clock.monotonic();
    try {
      // Not awaited: only the synchronous part is measured.
      return job();
    } finally {
      const nowMs = this.#clock.monotonic();
      const ms = Math.max(nowMs - startMs, leastMs);
      this.#charge(source, ms, nowMs);
      if (tenant !== '') this.#charge(tenantKey(source, tenant), ms, nowMs);
      this.#sliceMs += ms;
      this.#scheduleSlice();
    }
  }

  #charge(key: string, ms: number, atMs: number): void {
    this.#usage.set(key, { ms: this.#usageOf(key, atMs) + ms, atMs });
  }

  /** Until then, jobs may use up the current slice. */
  #scheduleSlice(): void {
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
    const source = lowest(this.#jobs, (source) => this.#usageOf(source, nowMs));
    const tenant = lowest(this.#tenantsOf(source), (tenant) => this.#usageOf(tenantKey(source, tenant), nowMs));
    return this.#remove(source, tenant, (jobs) => jobs.shift());
  }

  #rejectNewest(): void {
    const source = lowest(this.#jobs, (_, tenants) => -jobsIn(tenants));
    const tenant = lowest(this.#tenantsOf(source), (_, jobs) => -jobs.length);
    const newest = this.#remove(source, tenant, (jobs) => jobs.pop());
    newest?.reject(new CodedError('Overloaded', 'too many calls wait; try again'));
  }

  #usageOf(key: string, nowMs: number): number {
    const usage = this.#usage.get(key);
    return usage ? usage.ms * 2 ** ((usage.atMs - nowMs) / HALF_LIFE_MS) : 0;
  }

  #tenantsOf(source: string): Map<string, Job[]> {
    return this.#jobs.get(source) ?? new Map();
  }

  #remove(source: string, tenant: string, pick: (jobs: Job[]) => Job | undefined): Job | undefined {
    const tenants = this.#tenantsOf(source);
    const jobs = tenants.get(tenant) ?? [];
    const job = pick(jobs);
    if (job) this.#waiting--;
    if (jobs.length === 0) tenants.delete(tenant);
    if (tenants.size === 0) this.#jobs.delete(source);
    return job;
  }
}

// An address contains no space.
const tenantKey = (source: string, tenant: string): string => `${source} ${tenant}`;

const jobsIn = (tenants: ReadonlyMap<string, readonly Job[]>): number =>
  [...tenants.values()].reduce((sum, jobs) => sum + jobs.length, 0);

/** The first with the lowest rank; the empty string if the map is empty. */
function lowest<Value>(map: ReadonlyMap<string, Value>, rank: (key: string, value: Value) => number): string {
  let found = { key: '', rank: Number.POSITIVE_INFINITY };
  for (const [key, value] of map) {
    const rankOfKey = rank(key, value);
    if (rankOfKey < found.rank) found = { key, rank: rankOfKey };
  }
  return found.key;
}
