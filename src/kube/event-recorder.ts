import type { ObjectName } from '../api/object.ts';
import { events } from '../api/resources.ts';
import { type Cancel, type Clock, formatMicroTime, sleep } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { RecentMap } from '../kit/recent-map.ts';
import type { Client } from './client.ts';
import { isNotFound } from './errors.ts';
import { type EventSource, eventObject, type RecordedEvent, seriesKey } from './event-object.ts';
import { type KubeLog, silentLog } from './log.ts';

/** Best effort: it never blocks, throws, or fails the work that it reports on. */
export interface EventRecorder {
  /**
   * Writes the Event; an equal one within six minutes only counts as a repetition. Drops it beyond
   * `seriesBudget` or after `close`; skips a write beyond `writeBudget` until a later repetition.
   */
  record(event: RecordedEvent): void;
  /** Writes for at most 2 s, then drops the rest. */
  close(): Promise<void>;
}

/** The controller is the one that the Events name. */
export interface EventRecorderOptions extends EventSource {
  readonly client: Client;
  readonly clock: Clock;
  readonly log?: KubeLog;
}

/** Between two occurrences of the same series. */
const SERIES_MS = 6 * 60_000;
/** Collects repetitions for their count; the first occurrence is written at once. */
const COLLECT_MS = 10_000;
/** Series, and budgets of objects, that the recorder remembers. */
const MAX_SERIES = 1_000;
/** Writes that wait or run; further ones are skipped. */
const MAX_PENDING = 200;
/** New series about one object with one action: 25 at once, then one every five minutes. */
const seriesBudget: Budget = { burst: 25, refillMs: 5 * 60_000 };
/** Writes with one action: 300 at once, then 5 a second. A user can make many objects fail. */
const writeBudget: Budget = { burst: 300, refillMs: 200 };
const CLOSE_MS = 2_000;

/** One for each process; `close` it at the end. */
export function eventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

interface Budget {
  readonly burst: number;
  readonly refillMs: number;
}

interface Bucket {
  tokens: number;
  /** When the bucket last earned a token, or was created; monotonic. */
  refilledAtMs: number;
}

/** Occurrences of one Event, each within SERIES_MS of the previous one. */
interface Series {
  readonly event: RecordedEvent;
  /** Set once the Event is written. */
  name: ObjectName | undefined;
  count: number;
  /** The count that the written Event shows. */
  writtenCount: number;
  /** Epoch ms. */
  readonly firstAtMs: number;
  lastAtMs: number;
  /** As `lastAtMs`; monotonic. */
  lastMs: number;
  cancelTimer: Cancel | undefined;
}

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #log: KubeLog;
  readonly #series = new Map<string, Series>();
  readonly #seriesBuckets = new RecentMap<string, Bucket>(MAX_SERIES);
  /** By action. The code defines the actions, so they are few. */
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

  /** One at a time, so that Events do not compete with the work that they report on. */
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
        // Events expire, so the first one may no longer exist.
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

  /** By action, so that frequent Events, such as those of runs, do not crowd out rare ones. */
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

/** False if the bucket is empty. */
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
