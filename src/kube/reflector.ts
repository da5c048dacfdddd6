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
import { runWatchSession } from './watch-session.ts';
import { MalformedStreamError } from './watch-stream.ts';

/** The collection to list and watch; see `StoreSpec`. */
export interface ReflectorSpec {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly optional?: boolean;
  readonly followsSchema?: boolean;
}

/** Receives what a reflector reads. If a method throws CodedError `TooManyObjects`, the reflector waits for minutes, and then relists. */
export interface ReflectorSink {
  /** Receives a complete list in parts: `restart` discards the parts so far, `commit` replaces the content. */
  beginList(): { add(items: readonly KubeObject[]): void; restart(): void; commit(): void };
  /** Receives a watch event. Events may be repeated or out of order. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject, resourceVersion: string): void;
  /** The kind is not installed, so it has no objects. */
  absent(): void;
  /** The server answered or sent data. */
  alive(): void;
  /**
   * A list or a watch failed, or a list was older than an earlier one. `refused`: the status code, 401 or 403, if the server has listed the
   * objects before, and now refuses at least two calls in a row. A single 401 may only mean that the token was just replaced.
   */
  failed(reason: string, refused?: number): void;
}

/** The connections, the clock, and the callbacks of a reflector. */
export interface ReflectorOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Uniform in [0, 1), for delays. */
  readonly random: () => number;
  readonly log: KubeLog;
  readonly signal: AbortSignal;
  /** Checks open watches for lost permissions and dead connections. If absent, only the next watch shows a lost permission. */
  readonly probe?: WatchProbe | undefined;
  /** Called for each list or watch that the server answers with 401, 403, 429, or a 5xx. */
  readonly onRefusal?: ((resource: Resource, code: number) => void) | undefined;
}

/** Minimum duration of a watch, seconds; jitter adds up to a fifth. */
const WATCH_SECONDS = 300;
/** Maximum wait for a Retry-After, milliseconds. */
const LONGEST_RETRY_AFTER_MS = 60_000;
/** Bounds of the backoff after a failure, milliseconds. The cap also limits how long a watch lags behind a recovered API server. */
const BASE_MS = 500;
const CAP_MS = 5_000;
/** As BASE_MS and CAP_MS, for refusals. The cap also limits how long a watch lags behind the return of its permission. */
const REFUSED_BASE_MS = 100;
const REFUSED_CAP_MS = 2_500;
/** As CAP_MS, while the API server answers that it does not serve the kind: a kind that was just created is served within seconds. */
const NOT_SERVED_CAP_MS = 1_000;
/** Number of answers in a row to which NOT_SERVED_CAP_MS applies. */
const NOT_SERVED_TRIES = 20;
/**
 * How long an accepted watch must stay open before the reflector assumes that its permission is back, milliseconds: a server may accept a
 * watch and refuse it at once. With REFUSED_CAP_MS, this is less than 5 s, within which the status of a binding must show a restored
 * permission.
 */
const ALLOWED_AFTER_MS = 1_500;
/** Number of refusals in a row before the reflector reports one. */
const REFUSALS_BEFORE_REPORT = 2;
/** Consecutive failures between two warnings, about one warning a minute. The third failure causes the first. */
const WARN_EVERY = 15;
/** Maximum pause between two checks for a kind that is not installed, milliseconds. */
const ABSENT_CAP_MS = 30_000;
/**
 * Maximum pause after `TooManyObjects`, milliseconds; jitter shortens it by up to a half. Long, because a retry reads the whole list again.
 */
const TOO_MANY_OBJECTS_MS = 300_000;
/**
 * A watch that ends sooner than this, in milliseconds, counts as a failure, so that the reflector backs off from a server that closes at
 * once.
 */
const SHORT_LIVED_MS = 5_000;
/**
 * How long the reflector rejects lists that are older than the newest resourceVersion that it has seen, milliseconds. After that, it
 * assumes that a backup was restored.
 */
const STALE_LISTS_MS = 30_000;
/** Number of streams that break in a row, without a valid event, before the reflector relists. */
const MALFORMED_BEFORE_RELIST = 3;

/** Why a watch that the probe checks is opened anew. */
const doubtTexts = {
  connection: 'no answer to two calls in a row',
  permission: 'the server may no longer allow the watch',
} as const;

/** Keeps a sink equal to one collection of the API server until the signal aborts. Retries after every fault. Never rejects. */
export async function reflect(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions): Promise<void> {
  await new Reflector(spec, sink, options).run();
}

class Reflector {
  readonly #spec: ReflectorSpec;
  readonly #sink: ReflectorSink;
  readonly #options: ReflectorOptions;
  /** The resourceVersion from which the next watch starts; undefined if a list is needed. */
  #resumeVersion: string | undefined;
  /** The newest resourceVersion that a list or an event had; undefined before the first complete list. */
  #newest: string | undefined;
  /** When the API server should end the current watch by its timeout, milliseconds on the monotonic clock. */
  #timeoutAtMs = 0;
  /** Failures in a row. A watch that lived for SHORT_LIVED_MS ends the row. */
  #failures = 0;
  /** When the last list was complete, milliseconds on the monotonic clock. */
  #listedAtMs = Number.NEGATIVE_INFINITY;
  /** Number of streams that broke since the last valid event. */
  #malformedStreams = 0;
  /**
   * When the API server first listed an older resourceVersion than `#newest`, milliseconds on the monotonic clock; undefined if the last
   * list was not older.
   */
  #staleSinceMs: number | undefined;
  /** Number of lists and watches that the server refused since a list was complete or a watch lived for ALLOWED_AFTER_MS. */
  #refusals = 0;
  /** Cancels the timer that, after ALLOWED_AFTER_MS, ends the refusal. */
  #cancelAllowed: Cancel | undefined;
  /** The watch as the probe knows it; the same one for each connection. */
  readonly #probed: ProbedWatch;
  /** Ends the open watch with an error; undefined while none is open. */
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
      check: (doubt) => this.#endWatch?.(new Error(doubtTexts[doubt])),
    };
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const delayMs = await this.#listOrWatch();
      if (delayMs > 0) await sleep(clock, delayMs, signal).catch(() => undefined);
    }
  }

  /** Runs one list or one watch. Resolves to the delay before the next one, milliseconds. */
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
      // The API server ended the watch, normally after the requested five minutes. Start the next one at once.
      if (settled.error === undefined) return 0;
    }
    return this.#delayAfter(settled.error);
  }

  /** Lists the collection into the sink. Resolves to the resourceVersion of the list; undefined if the list is stale. */
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

  /**
   * Whether the list is older than what the sink has: a lagging API server may answer with an older state, which the store must not adopt.
   */
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
    // Events may be duplicated or out of order; the resourceVersion from which the next watch starts never decreases.
    if (this.#resumeVersion !== undefined && isOlder(event.resourceVersion, this.#resumeVersion)) return;
    this.#resumeVersion = event.resourceVersion;
    this.#newest = event.resourceVersion;
  }

  /**
   * Handles the failure of a list, or the end of a watch. `error`: undefined if the server ended the watch without an error. Returns the
   * delay before the next list or watch, milliseconds.
   */
  #delayAfter(error: unknown): number {
    if (this.#options.signal.aborted) return 0;
    if (isExpired(error) && this.#resumeVersion !== undefined) {
      this.#resumeVersion = undefined;
      // After an outage, the resourceVersion is often too old: relist at once, unless the last list was a moment ago.
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
      // The server no longer serves the collection. If it serves a collection of that name again, the reflector must list it.
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

  /** Reports the watch as alive. While a refusal lasts, does so only after the watch has stayed open for ALLOWED_AFTER_MS. */
  #onWatchAlive(): void {
    if (this.#refusals === 0) this.#sink.alive();
    else this.#cancelAllowed ??= this.#options.clock.schedule(ALLOWED_AFTER_MS, () => this.#onAllowed());
  }

  /** Ends the refusals in a row, after a complete list or a watch that stayed open. */
  #onAllowed(): void {
    if (this.#refusals >= REFUSALS_BEFORE_REPORT) this.#options.log.info('list-watch is allowed again', this.#fields());
    this.#refusals = 0;
    this.#sink.alive();
  }

  #onRefused(error: ApiError): number {
    const { log, random, onRefusal } = this.#options;
    const { code } = error;
    onRefusal?.(this.#spec.resource, code);
    // Before the first complete list, do not report a refusal: the permission may only be granted later. A provider, for example, grants it
    // after it has created an export.
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
      // `#failures` becomes 0 only after a watch of SHORT_LIVED_MS, so that a server that keeps changing its answer causes no hot loop.
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
