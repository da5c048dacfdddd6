import type { KubeObject, Resource } from '../api/object.ts';
import { askedDelayMs, backoffMs, jittered } from '../kit/backoff.ts';
import { type Clock, sleep } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { resourcePath } from './api-paths.ts';
import { isExpired, isNotFound } from './errors.ts';
import { listPages } from './list-pages.ts';
import type { KubeLog } from './log.ts';
import { isOlder } from './resource-version.ts';
import type { Transport } from './transport.ts';
import type { WatchEvent } from './watch-event.ts';
import { runWatchSession } from './watch-session.ts';
import { MalformedStreamError } from './watch-stream.ts';

export interface ReflectorSpec {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly optional?: boolean;
  readonly followsSchema?: boolean;
}

/** Receives what a reflector reads. If it throws CodedError `TooManyObjects`, the reflector waits for minutes, then relists. */
export interface ReflectorSink {
  /** Receives a complete list in parts: `restart` discards the parts so far, `commit` replaces the content. */
  beginList(): { add(items: readonly KubeObject[]): void; restart(): void; commit(): void };
  /** Receives a watch event. Events may be repeated or out of order. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject, resourceVersion: string): void;
  /** The kind is not installed, so it has no objects. */
  absent(): void;
  /** The server answered or sent data. */
  alive(): void;
  /** A list or a watch failed, or a list was older than an earlier one. */
  failed(reason: string): void;
}

export interface ReflectorOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: KubeLog;
  readonly signal: AbortSignal;
}

/** Requested duration of a watch, seconds; jitter changes it by up to 10%. */
const WATCH_SECONDS = 300;
/** Bounds of the backoff after a failure, milliseconds. The cap also limits how long a watch lags behind a recovered API server. */
const BASE_MS = 500;
const CAP_MS = 5_000;
/** Consecutive failures between two warnings, about one warning a minute. */
const WARN_EVERY = 15;
/** Longest pause between two checks for a kind that is not installed, milliseconds. */
const ABSENT_CAP_MS = 30_000;
/** Longest pause after `TooManyObjects`, milliseconds; jitter shortens it by up to a half. Long, because a retry reads the whole list again. */
const TOO_MANY_MS = 300_000;
/** Longest Retry-After that the reflector obeys, milliseconds. */
const LONGEST_RETRY_AFTER_MS = 60_000;
/** A watch that ends sooner counts as a failure, so that the reflector backs off from a server that closes at once. */
const SHORT_LIVED_MS = 5_000;
/** How long the reflector rejects lists that are older than its newest version. After that, it assumes a restore from a backup. */
const STALE_LISTS_MS = 30_000;
/** Streams that break at the same version before the reflector relists. */
const MALFORMED_BEFORE_RELIST = 3;

/** Keeps a sink equal to one collection of the API server, despite any fault, until the signal aborts. Never rejects. */
export async function reflect(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions): Promise<void> {
  await new Reflector(spec, sink, options).run();
}

class Reflector {
  readonly #spec: ReflectorSpec;
  readonly #sink: ReflectorSink;
  readonly #options: ReflectorOptions;
  /** The version from which the next watch starts; undefined if a list is needed. */
  #resumeVersion: string | undefined;
  /** The newest version ever seen. */
  #newest: string | undefined;
  /** When the server should end the watch. */
  #dueMs = 0;
  #failures = 0;
  #listedAtMs = Number.NEGATIVE_INFINITY;
  #malformedStreams = 0;
  #staleSinceMs: number | undefined;

  constructor(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions) {
    this.#spec = spec;
    this.#sink = sink;
    this.#options = options;
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
        return this.#failed(error);
      }
    }
    const startMs = clock.monotonic();
    const settled = await this.#watch().then(
      () => ({ error: undefined }),
      (error: unknown) => ({ error }),
    );
    const nowMs = clock.monotonic();
    if (this.#spec.followsSchema && settled.error === undefined && nowMs < this.#dueMs) this.#resumeVersion = undefined;
    if (nowMs - startMs >= SHORT_LIVED_MS) {
      this.#failures = 0;
      // The regular end after five minutes; the next watch follows at once.
      if (settled.error === undefined) return 0;
    }
    return this.#failed(settled.error);
  }

  async #list(): Promise<string | undefined> {
    const { transport, signal } = this.#options;
    const parts = this.#sink.beginList();
    let version = '';
    for await (const page of listPages(transport, this.#spec.resource, { ...this.#spec, signal, retry: 'never' })) {
      this.#sink.alive();
      if (page.restarted) parts.restart();
      parts.add(page.items);
      version = page.resourceVersion;
    }
    if (this.#isStale(version)) return undefined;
    parts.commit();
    this.#listedAtMs = this.#options.clock.monotonic();
    this.#newest = version;
    return version;
  }

  /** A lagging API server answers with an older state, which the store must not adopt. */
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
      'the API server keeps listing older versions, as after a restore; its content replaces the store',
      this.#fields(),
    );
    return false;
  }

  #watch(): Promise<void> {
    const { transport, clock, random, signal } = this.#options;
    const { resource, namespace, labelSelector, fieldSelector } = this.#spec;
    return runWatchSession({
      transport,
      clock,
      signal,
      path: resourcePath(resource, { namespace }),
      query: () => {
        const timeoutSeconds = Math.round(jittered(WATCH_SECONDS, 0.1, random));
        this.#dueMs = clock.monotonic() + timeoutSeconds * 1000;
        const from = { allowWatchBookmarks: true, resourceVersion: this.#resumeVersion };
        return { watch: true, ...from, timeoutSeconds, labelSelector, fieldSelector };
      },
      alive: () => this.#sink.alive(),
      event: (event) => this.#onEvent(event),
    });
  }

  #onEvent(event: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    if (event.type !== 'BOOKMARK') this.#sink.apply(event.type, event.object, event.resourceVersion);
    this.#malformedStreams = 0;
    // Events may be duplicated or out of order; the version from which the next watch starts never decreases.
    if (this.#resumeVersion !== undefined && isOlder(event.resourceVersion, this.#resumeVersion)) return;
    this.#resumeVersion = event.resourceVersion;
    this.#newest = event.resourceVersion;
  }

  #failed(error: unknown): number {
    if (this.#options.signal.aborted) return 0;
    if (isExpired(error) && this.#resumeVersion !== undefined) {
      this.#resumeVersion = undefined;
      // Usual after an outage; relist at once, unless the last list did not help.
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
      return this.#backoff(describe(error)) + TOO_MANY_MS * (0.5 + this.#options.random() / 2);
    }
    if (isNotFound(error)) {
      // The collection no longer exists; a later one with the same name has new versions and needs a list.
      this.#resumeVersion = undefined;
      if (this.#spec.optional) return this.#onAbsent();
    }
    const delayMs = this.#backoff(error === undefined ? 'the server ended the watch at once' : describe(error));
    return Math.max(delayMs, Math.min(askedDelayMs(error), LONGEST_RETRY_AFTER_MS));
  }

  #onAbsent(): number {
    const { log, random } = this.#options;
    if (this.#failures === 0) log.debug('the kind is not installed; checking again periodically', this.#fields());
    this.#sink.absent();
    this.#sink.alive();
    return backoffMs({ baseMs: 2_000, capMs: ABSENT_CAP_MS, attempt: this.#failures++, jitter: 'half', random });
  }

  #backoff(reason: string): number {
    const { log, random } = this.#options;
    this.#sink.failed(reason);
    const attempt = this.#failures++;
    // Half of the delay is fixed, so that jitter never causes a hot loop.
    const delayMs = backoffMs({ baseMs: BASE_MS, capMs: CAP_MS, attempt, jitter: 'half', random });
    const fields = { ...this.#fields(), reason, attempt, delayMs: Math.round(delayMs) };
    if (attempt % WARN_EVERY === 2) log.warn('list-watch keeps failing', fields);
    else log.debug('list-watch interrupted', fields);
    return delayMs;
  }

  #fields(): Record<string, unknown> {
    const { resource, namespace } = this.#spec;
    return { group: resource.group, resource: resource.plural, ...(namespace ? { namespace } : {}) };
  }
}
