import type { ObjectName } from '../api/object.ts';
import { events } from '../api/resources.ts';
import { type Cancel, type Clock, formatMicroTime, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { RecentMap } from '../kit/recent-map.ts';
import type { Client } from './client.ts';
import { isNotFound } from './errors.ts';
import { type EventSource, eventObject, type RecordedEvent, seriesKey } from './event-object.ts';
import { type KubeLog, silentLog } from './log.ts';

/** Records events.k8s.io/v1 Events. Best effort: it never blocks, throws, or fails the work that it reports on. */
export interface EventRecorder {
  /**
   * Writes the Event. If an equal Event was recorded less than six minutes ago, counts it as a repetition instead. Drops the Event after
   * `close`, or if the budget of its object and action is used up (`seriesBudget`). Skips a write if the budget of its action is used up
   * (`writeBudget`) or too many writes wait. After a skipped or failed write, a later repetition writes the Event.
   */
  record(event: RecordedEvent): void;
  /** Writes pending Events for at most 2 s, then drops the rest and ends the recorder. */
  close(): Promise<void>;
}

/** The cluster of the Events, and the controller that they name. */
export interface EventRecorderOptions extends EventSource {
  readonly client: Client;
  readonly clock: Clock;
  readonly log?: KubeLog;
}

/** An occurrence within this time after the previous one belongs to the same series, milliseconds. */
const SERIES_MS = 6 * 60_000;
/** How long the recorder collects repetitions before it writes their count, milliseconds. It writes the first occurrence at once. */
const COLLECT_MS = 10_000;
/** Maximum number of series, and of budgets of objects, that the recorder remembers. It forgets the oldest. */
const MAX_SERIES = 1_000;
/** Maximum number of writes that wait or run; the recorder skips further ones. */
const MAX_PENDING = 200;
/** Budget of new series about one object and with one action: 25 at once, then one every five minutes. */
const seriesBudget: Budget = { burst: 25, refillMs: 5 * 60_000 };
/** Budget of writes with one action: 300 at once, then 5 a second. It bounds the writes that a user causes by making many objects fail. */
const writeBudget: Budget = { burst: 300, refillMs: 200 };
/** Maximum time that `close` waits for pending writes, milliseconds. */
const CLOSE_MS = 2_000;

/** The EventRecorder of one process. Call `close` when the process stops. */
export function eventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

/** The size of a token bucket, and how fast it fills. */
interface Budget {
  /** Tokens of a full bucket. */
  readonly burst: number;
  /** Interval in which the bucket earns a token, milliseconds. */
  readonly refillMs: number;
}

/** A token bucket at an instant of the monotonic clock. */
interface Bucket {
  tokens: number;
  /** When the bucket last earned a token, milliseconds on the monotonic clock; before that, when the bucket was created. */
  refilledAtMs: number;
}

/** Occurrences of one Event, each within SERIES_MS of the previous one. */
interface Series {
  readonly event: RecordedEvent;
  /** The written Event; undefined until it is written. */
  name: ObjectName | undefined;
  /** Number of occurrences. */
  count: number;
  /** Number of occurrences that the written Event shows. */
  writtenCount: number;
  /** Time of the first occurrence, epoch ms. */
  readonly firstAtMs: number;
  /** Time of the last occurrence, epoch ms. */
  lastAtMs: number;
  /** Time of the last occurrence, milliseconds on the monotonic clock. */
  lastMs: number;
  /** Cancels the timer after which the count is written; undefined if no timer runs. */
  cancelTimer: Cancel | undefined;
}

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #log: KubeLog;
  readonly #series = new Map<string, Series>();
  readonly #seriesBuckets = new RecentMap<string, Bucket>(MAX_SERIES);
  /** By action. The server's code defines the actions, so that their number is bounded. */
  readonly #writeBuckets = new Map<string, Bucket>();
  readonly #stop = new AbortController();
  /** Resolves when the writes so far have ended. */
  #writes: Promise<void> = Promise.resolve();
  /** Number of writes that wait or run. */
  #pending = 0;
  #closed = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
  }

  record(event: RecordedEvent): void {
    if (this.#closed) return;
    const nowMs = this.#options.clock.monotonic();
    const key = seriesKey(event);
    const current = this.#series.get(key);
    if (current && nowMs - current.lastMs < SERIES_MS) {
      this.#countRepetition(current, nowMs);
      return;
    }
    current?.cancelTimer?.();
    if (!this.#takeSeriesToken(event, nowMs)) return;
    const atMs = this.#options.clock.now();
    const series: Series = {
      event,
      name: undefined,
      count: 1,
      writtenCount: 0,
      firstAtMs: atMs,
      lastAtMs: atMs,
      lastMs: nowMs,
      cancelTimer: undefined,
    };
    this.#series.delete(key);
    this.#series.set(key, series);
    this.#forgetOldest();
    this.#write(series);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const series of this.#series.values()) {
      if (!series.cancelTimer) continue;
      series.cancelTimer();
      this.#write(series);
    }
    const timer = new AbortController();
    const timeout = sleep(this.#options.clock, CLOSE_MS, timer.signal).catch(() => undefined);
    await Promise.race([this.#writes, timeout]);
    timer.abort();
    this.#stop.abort();
    this.#series.clear();
  }

  #countRepetition(series: Series, nowMs: number): void {
    series.count++;
    series.lastAtMs = this.#options.clock.now();
    series.lastMs = nowMs;
    series.cancelTimer ??= this.#options.clock.schedule(COLLECT_MS, () => {
      series.cancelTimer = undefined;
      this.#write(series);
    });
  }

  /** Sends one write at a time, so that Events do not compete with the work that they report on. */
  #write(series: Series): void {
    if (this.#pending >= MAX_PENDING || !this.#takeWriteToken(series.event)) return;
    this.#pending++;
    this.#writes = this.#writes
      .then(() => this.#send(series))
      .catch((error: unknown) => {
        const { regarding, reason } = series.event;
        const object = [regarding.kind, regarding.namespace, regarding.name]
          .filter((part) => part !== undefined)
          .join('/');
        this.#log.debug('an Event could not be written', { regarding: object, reason, error: describe(error) });
      })
      .finally(() => {
        this.#pending--;
      });
  }

  async #send(series: Series): Promise<void> {
    const { client } = this.#options;
    const { signal } = this.#stop;
    const { count, name, firstAtMs, lastAtMs } = series;
    const lastObservedTime = formatMicroTime(lastAtMs);
    if (signal.aborted || count === series.writtenCount) return;
    if (name) {
      try {
        await client.mergePatch(events, name, { series: { count, lastObservedTime } }, { signal });
        series.writtenCount = count;
        return;
      } catch (error) {
        // Events expire, so the first Event of the series may no longer exist.
        if (!isNotFound(error)) throw error;
      }
    }
    const object = eventObject(series.event, this.#options, firstAtMs);
    const created = await client.create(
      events,
      count > 1 ? { ...object, series: { count, lastObservedTime } } : object,
      {
        signal,
      },
    );
    const { namespace } = created.metadata;
    series.name = { name: created.metadata.name, ...(namespace === undefined ? {} : { namespace }) };
    series.writtenCount = count;
  }

  /** Each action has its own budgets, so that frequent Events, such as those of runs, do not crowd out rare ones. */
  #takeSeriesToken({ regarding, action }: RecordedEvent, nowMs: number): boolean {
    const key = JSON.stringify([regarding.kind, regarding.namespace, regarding.name, regarding.uid, action]);
    return takeToken(this.#seriesBuckets, key, seriesBudget, nowMs);
  }

  #takeWriteToken({ action }: RecordedEvent): boolean {
    return takeToken(this.#writeBuckets, action, writeBudget, this.#options.clock.monotonic());
  }

  #forgetOldest(): void {
    for (const [key, series] of this.#series) {
      if (this.#series.size <= MAX_SERIES) return;
      series.cancelTimer?.();
      this.#series.delete(key);
    }
  }
}

/** Takes a token from the bucket of `key`. Returns false if the bucket is empty. */
function takeToken(buckets: Map<string, Bucket>, key: string, { burst, refillMs }: Budget, nowMs: number): boolean {
  const bucket = buckets.get(key) ?? { tokens: burst, refilledAtMs: nowMs };
  const earned = Math.floor((nowMs - bucket.refilledAtMs) / refillMs);
  bucket.tokens = Math.min(burst, bucket.tokens + earned);
  bucket.refilledAtMs += earned * refillMs;
  buckets.set(key, bucket);
  if (bucket.tokens < 1) return false;
  bucket.tokens--;
  return true;
}
