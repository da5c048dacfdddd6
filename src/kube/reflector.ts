// Keeps a sink equal to one collection of the API server, through any fault:
//
//   list ──> watch for about 5 minutes ──> watch ──> …
//    ^            │
//    └── backoff ─┴─ too old, three broken streams, not served, too many objects, new schema
//
// Most failures resume the watch after the backoff; the ones above list again.

import type { KubeObject, Resource } from '../api/object.ts';
import { backoffMs, retryAfterMsOf } from '../kit/backoff.ts';
import { type Cancel, type Clock, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { resourcePath } from './api-paths.ts';
import { ApiError, isExpired, isForbidden, isNotFound, isUnauthorized, isUnreachable } from './errors.ts';
import { listPages } from './list-pages.ts';
import type { KubeLog } from './log.ts';
import { isOlder } from './resource-version.ts';
import type { Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import type { ProbedWatch, WatchProbe } from './watch-probe.ts';
import { MalformedStreamError, runWatchSession } from './watch-session.ts';

/** See `StoreSpec`. */
export interface ReflectorSpec {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly optional?: boolean;
  readonly followsSchema?: boolean;
}

/** After CodedError `TooManyObjects` from a method, the reflector relists some minutes later. */
export interface ReflectorSink {
  /** A list in parts: `restart` discards those so far, `commit` replaces the content. */
  beginList(): { add(items: readonly KubeObject[]): void; restart(): void; commit(): void };
  /** Events may be repeated or out of order. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject, resourceVersion: string): void;
  /** The kind is not installed, so it has no objects. */
  absent(): void;
  /** The server answered or sent data. */
  alive(): void;
  /** `refused`: 401 or 403, twice in a row: once may only mean that the token was replaced. */
  failed(reason: string, refused?: number): void;
}

export interface ReflectorOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Uniform in [0, 1), for delays. */
  readonly random: () => number;
  readonly log: KubeLog;
  readonly signal: AbortSignal;
  /** Without a probe, only the next watch shows a lost permission. */
  readonly probe?: WatchProbe | undefined;
  /** For each list or watch that the server answers with 401, 403, 429, or a 5xx. */
  readonly onRefusal?: ((resource: Resource, code: number) => void) | undefined;
}

/** Minimum duration of a watch; jitter adds up to a fifth. */
const WATCH_SECONDS = 300;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** Backoff. The cap also limits how long a watch lags behind a recovered API server. */
const BASE_MS = 500;
const CAP_MS = 5_000;
/** After refusals. The cap also limits how long a watch lags behind its restored permission. */
const REFUSED_BASE_MS = 100;
const REFUSED_CAP_MS = 2_500;
/** While the kind is not served: one that was just created is served within seconds. */
const NOT_SERVED_CAP_MS = 1_000;
/** Answers in a row to which NOT_SERVED_CAP_MS applies. */
const NOT_SERVED_TRIES = 20;
/**
 * A server may accept a watch and refuse it at once, so a permission is back only after this. With
 * REFUSED_CAP_MS, under the 5 s in which a binding must show a restored permission.
 */
const ALLOWED_AFTER_MS = 1_500;
const REFUSALS_BEFORE_REPORT = 2;
/** Consecutive failures, so about one warning a minute. The third causes the first. */
const WARN_EVERY = 15;
/** Between two checks for a kind that is not installed. */
const ABSENT_CAP_MS = 30_000;
/** After `TooManyObjects`; jitter shortens it by up to a half. A retry reads the whole list. */
const TOO_MANY_OBJECTS_MS = 300_000;
/** A shorter watch counts as a failure, for the backoff from a server that closes at once. */
const SHORT_LIVED_MS = 5_000;
/** After older lists for this long, a backup must have been restored. */
const STALE_LISTS_MS = 30_000;
/** Streams that break in a row, without a valid event, before the reflector relists. */
const MALFORMED_BEFORE_RELIST = 3;

/** Runs until the signal aborts. Never rejects. */
export async function reflect(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions): Promise<void> {
  await new Reflector(spec, sink, options).run();
}

class Reflector {
  readonly #spec: ReflectorSpec;
  readonly #sink: ReflectorSink;
  readonly #options: ReflectorOptions;
  /** Where the next watch starts; not set if a list is needed. */
  #resumeVersion: string | undefined;
  /** The newest resourceVersion of a list or an event; set by the first complete list. */
  #newest: string | undefined;
  /** When the API server should end the current watch; monotonic. */
  #timeoutAtMs = 0;
  /** In a row. A watch that lived for SHORT_LIVED_MS ends the row. */
  #failures = 0;
  /** When the last list was complete; monotonic. */
  #listedAtMs = Number.NEGATIVE_INFINITY;
  /** Streams that broke since the last valid event. */
  #malformedStreams = 0;
  /** Since when lists are older than `#newest`; monotonic. */
  #staleSinceMs: number | undefined;
  /** Since a list was complete or a watch lived for ALLOWED_AFTER_MS. */
  #refusals = 0;
  /** Of the timer that ends the refusal after ALLOWED_AFTER_MS. */
  #cancelAllowed: Cancel | undefined;
  /** The same object for each connection. */
  readonly #probed: ProbedWatch;
  /** Set while a watch is open. */
  #endWatch: ((error: Error) => void) | undefined;

  constructor(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions) {
    this.#spec = spec;
    this.#sink = sink;
    this.#options = options;
    const { resource, namespace, fieldSelector } = spec;
    this.#probed = {
      resource,
      namespace,
      fieldSelector,
      alive: () => {
        if (this.#refusals === 0) this.#sink.alive();
      },
      check: () => this.#endWatch?.(new Error('the server may no longer allow the watch')),
    };
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const delayMs = await this.#listOrWatch();
      if (delayMs > 0) await sleep(clock, delayMs, signal).catch(() => undefined);
    }
  }

  /** Resolves to the delay before the next call. */
  async #listOrWatch(): Promise<number> {
    const { clock } = this.#options;
    if (this.#resumeVersion === undefined) {
      try {
        this.#resumeVersion = await this.#list();
        return this.#resumeVersion === undefined ? this.#backoff('the list is older than an earlier one') : 0;
      } catch (error) {
        return this.#delayAfter(error);
      }
    }
    const startMs = clock.monotonic();
    const settled = await this.#watch().then(
      () => ({ error: undefined }),
      (error: unknown) => ({ error }),
    );
    this.#cancelAllowed?.();
    this.#cancelAllowed = undefined;
    const nowMs = clock.monotonic();
    // A watch that ends early may mean that the schema has changed: relist.
    if (this.#spec.followsSchema && settled.error === undefined && nowMs < this.#timeoutAtMs)
      this.#resumeVersion = undefined;
    if (nowMs - startMs >= SHORT_LIVED_MS) {
      this.#failures = 0;
      // The normal end, after the requested five minutes. Start the next one at once.
      if (settled.error === undefined) return 0;
    }
    return this.#delayAfter(settled.error);
  }

  /** Resolves to the resourceVersion of the list, unless the list is stale. */
  async #list(): Promise<string | undefined> {
    const { transport, signal } = this.#options;
    const parts = this.#sink.beginList();
    let version = '';
    for await (const page of listPages(transport, this.#spec.resource, { ...this.#spec, signal, retry: 'never' })) {
      if (this.#refusals === 0) this.#sink.alive();
      if (page.restarted) parts.restart();
      parts.add(page.items);
      version = page.resourceVersion;
    }
    if (this.#isStale(version)) return undefined;
    parts.commit();
    this.#onAllowed();
    this.#listedAtMs = this.#options.clock.monotonic();
    this.#newest = version;
    return version;
  }

  /** A lagging API server may list an older state, which the store must not adopt. */
  #isStale(version: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    if (this.#newest === undefined || !isOlder(version, this.#newest)) {
      this.#staleSinceMs = undefined;
      return false;
    }
    this.#staleSinceMs ??= nowMs;
    if (nowMs - this.#staleSinceMs < STALE_LISTS_MS) return true;
    this.#staleSinceMs = undefined;
    this.#options.log.warn(
      `the API server has listed an older state for ${STALE_LISTS_MS / 1000} s, as after a restore from a backup; this process now uses that state`,
      this.#fields(),
    );
    return false;
  }

  #watch(): Promise<void> {
    const { transport, clock, random, signal, probe } = this.#options;
    const { resource, namespace, labelSelector, fieldSelector } = this.#spec;
    const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + random() / 5));
    this.#timeoutAtMs = clock.monotonic() + timeoutSeconds * 1000;
    const from = { allowWatchBookmarks: true, resourceVersion: this.#resumeVersion };
    return runWatchSession({
      transport,
      clock,
      signal,
      path: resourcePath(resource, { namespace }),
      query: { watch: true, ...from, timeoutSeconds, labelSelector, fieldSelector },
      alive: () => this.#onWatchAlive(),
      opened: (end) => {
        this.#endWatch = end;
        const leave = probe?.add(this.#probed);
        return () => {
          this.#endWatch = undefined;
          leave?.();
        };
      },
      event: (event) => this.#onEvent(event),
    });
  }

  #onEvent(event: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    if (event.type !== 'BOOKMARK') this.#sink.apply(event.type, event.object, event.resourceVersion);
    this.#malformedStreams = 0;
    // Events may be out of order; the next watch never starts further back.
    if (this.#resumeVersion !== undefined && isOlder(event.resourceVersion, this.#resumeVersion)) return;
    this.#resumeVersion = event.resourceVersion;
    this.#newest = event.resourceVersion;
  }

  /** `error`: absent if the server ended the watch. Returns the delay before the next call. */
  #delayAfter(error: unknown): number {
    if (this.#options.signal.aborted) return 0;
    if (isExpired(error) && this.#resumeVersion !== undefined) {
      this.#resumeVersion = undefined;
      // After an outage, the version is often too old: relist at once, unless a list just ended.
      if (this.#options.clock.monotonic() - this.#listedAtMs >= SHORT_LIVED_MS) {
        this.#failures = 0;
        return 0;
      }
    }
    if (error instanceof MalformedStreamError && ++this.#malformedStreams >= MALFORMED_BEFORE_RELIST) {
      this.#malformedStreams = 0;
      this.#resumeVersion = undefined;
    }
    if (error instanceof CodedError && error.code === 'TooManyObjects') {
      this.#resumeVersion = undefined;
      return this.#backoff(describe(error)) + TOO_MANY_OBJECTS_MS * (0.5 + this.#options.random() / 2);
    }
    if (isNotFound(error)) {
      // A collection of that name may be served again; it must then be listed.
      this.#resumeVersion = undefined;
      if (this.#spec.optional) return this.#onAbsent();
    }
    if (error instanceof ApiError && (isUnauthorized(error) || isForbidden(error))) return this.#onRefused(error);
    if (isNotFound(error) && this.#failures < NOT_SERVED_TRIES)
      return this.#backoff(describe(error), NOT_SERVED_CAP_MS);
    if (error instanceof ApiError && isUnreachable(error)) this.#options.onRefusal?.(this.#spec.resource, error.code);
    const delayMs = this.#backoff(error === undefined ? 'the server ended the watch at once' : describe(error));
    return Math.max(delayMs, Math.min(retryAfterMsOf(error), LONGEST_RETRY_AFTER_MS));
  }

  #onAbsent(): number {
    const { log, random } = this.#options;
    if (this.#failures === 0) log.debug('the kind is not installed; checking again periodically', this.#fields());
    this.#sink.absent();
    this.#sink.alive();
    return backoffMs({ baseMs: 2_000, capMs: ABSENT_CAP_MS, attempt: this.#failures++, jitter: 'half', random });
  }

  /** While a refusal lasts, only after the watch has stayed open for ALLOWED_AFTER_MS. */
  #onWatchAlive(): void {
    if (this.#refusals === 0) this.#sink.alive();
    else this.#cancelAllowed ??= this.#options.clock.schedule(ALLOWED_AFTER_MS, () => this.#onAllowed());
  }

  /** After a complete list, or a watch that stayed open. */
  #onAllowed(): void {
    if (this.#refusals >= REFUSALS_BEFORE_REPORT) this.#options.log.info('list-watch is allowed again', this.#fields());
    this.#refusals = 0;
    this.#sink.alive();
  }

  #onRefused(error: ApiError): number {
    const { log, random, onRefusal } = this.#options;
    const { code } = error;
    onRefusal?.(this.#spec.resource, code);
    // The permission may come later: a provider grants it after creating an export.
    if (this.#newest === undefined) return this.#backoff(describe(error));
    this.#refusals++;
    this.#sink.failed(describe(error), this.#refusals >= REFUSALS_BEFORE_REPORT ? code : undefined);
    if (this.#refusals === REFUSALS_BEFORE_REPORT)
      log.warn(
        'list-watch is no longer allowed; the store is out of date; check the credentials and their permission to list and watch',
        {
          ...this.#fields(),
          reason: describe(error),
        },
      );
    return backoffMs({
      baseMs: REFUSED_BASE_MS,
      capMs: REFUSED_CAP_MS,
      // Only a watch of SHORT_LIVED_MS resets `#failures`: changing answers cause no hot loop.
      attempt: Math.max(this.#refusals - 1, this.#failures++),
      jitter: 'half',
      random,
    });
  }

  #backoff(reason: string, capMs = CAP_MS): number {
    const { log, random } = this.#options;
    this.#sink.failed(reason);
    const attempt = this.#failures++;
    // Half of the delay is fixed, so that jitter never causes a hot loop.
    const delayMs = backoffMs({ baseMs: BASE_MS, capMs, attempt, jitter: 'half', random });
    const fields = { ...this.#fields(), reason, attempt, delayMs: Math.round(delayMs) };
    if (attempt % WARN_EVERY === 2 && capMs === CAP_MS)
      log.warn('list-watch keeps failing; the store may be out of date', fields);
    else log.debug('list-watch interrupted', fields);
    return delayMs;
  }

  #fields(): Record<string, unknown> {
    const { resource, namespace, labelSelector } = this.#spec;
    const optional = { ...(namespace ? { namespace } : {}), ...(labelSelector ? { labelSelector } : {}) };
    return { group: resource.group, resource: resource.plural, ...optional };
  }
}
