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

/** Where a reflector puts what it learns. What throws CodedError `TooManyObjects` is left alone for minutes, then listed anew. */
export interface ReflectorSink {
  /** Takes in a complete list that arrives in parts: `restart` voids the parts so far, `commit` makes it the content. */
  beginList(): { add(items: readonly KubeObject[]): void; restart(): void; commit(): void };
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject, resourceVersion: string): void;
  /** The kind is not installed: nothing of it exists. */
  absent(): void;
  /** The server was heard. */
  alive(): void;
  /** A list or a watch failed, or could not be had. */
  failed(reason: string): void;
}

export interface ReflectorOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: KubeLog;
  readonly signal: AbortSignal;
}

const WATCH_SECONDS = 300;
const BASE_MS = 500;
/** Also bounds how long an apiserver is back before its watches are. */
const CAP_MS = 5_000;
/** Failures in a row between two warnings: about one a minute. */
const WARN_EVERY = 15;
const ABSENT_CAP_MS = 30_000;
/** Looking again means to read them all again. */
const TOO_MANY_MS = 300_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** A watch that ended sooner counts as a failure, so that a server which closes at once is not hammered. */
const SHORT_LIVED_MS = 5_000;
/** How long lists older than what was seen are refused. Beyond it the cluster was restored from a backup and the past is the truth. */
const STALE_LISTS_MS = 30_000;
/** Streams broken at the same place before the content is listed anew. */
const MALFORMED_BEFORE_RELIST = 3;

/** Keeps a sink equal to one collection of the apiserver, whatever happens on the way, until the signal aborts. Never rejects. */
export async function reflect(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions): Promise<void> {
  await new Reflector(spec, sink, options).run();
}

class Reflector {
  readonly #spec: ReflectorSpec;
  readonly #sink: ReflectorSink;
  readonly #options: ReflectorOptions;
  /** Where the next watch starts; undefined calls for a list. */
  #from: string | undefined;
  /** The newest version ever seen. */
  #newest: string | undefined;
  /** When the server is to end the watch. */
  #dueMs = 0;
  #failures = 0;
  #listedAtMs = Number.NEGATIVE_INFINITY;
  #malformed = 0;
  #staleSinceMs: number | undefined;

  constructor(spec: ReflectorSpec, sink: ReflectorSink, options: ReflectorOptions) {
    this.#spec = spec;
    this.#sink = sink;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#options;
    while (!signal.aborted) {
      const delayMs = await this.#turn();
      if (delayMs > 0) await sleep(clock, delayMs, signal).catch(() => undefined);
    }
  }

  /** One list or one watch; resolves to the milliseconds before the next. */
  async #turn(): Promise<number> {
    const { clock } = this.#options;
    if (this.#from === undefined) {
      try {
        this.#from = await this.#list();
        return this.#from === undefined ? this.#backoff('a list is older than what was seen before') : 0;
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
    if (this.#spec.followsSchema && settled.error === undefined && nowMs < this.#dueMs) this.#from = undefined;
    if (nowMs - startMs >= SHORT_LIVED_MS) {
      this.#failures = 0;
      // The ordinary end after five minutes: the next one follows at once.
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

  /** A server that lags, or another head of a split control plane, answers with the past; the store must not follow it there. */
  #isStale(version: string): boolean {
    const nowMs = this.#options.clock.monotonic();
    if (this.#newest === undefined || !isOlder(version, this.#newest)) {
      this.#staleSinceMs = undefined;
      return false;
    }
    this.#staleSinceMs ??= nowMs;
    if (nowMs - this.#staleSinceMs < STALE_LISTS_MS) return true;
    this.#staleSinceMs = undefined;
    this.#options.log.warn('the cluster went back in time; its present content is taken over', this.#fields());
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
        const from = { allowWatchBookmarks: true, resourceVersion: this.#from };
        return { watch: true, ...from, timeoutSeconds, labelSelector, fieldSelector };
      },
      alive: () => this.#sink.alive(),
      event: (event) => this.#onEvent(event),
    });
  }

  #onEvent(event: Exclude<WatchEvent, { type: 'ERROR' }>): void {
    if (event.type !== 'BOOKMARK') this.#sink.apply(event.type, event.object, event.resourceVersion);
    this.#malformed = 0;
    // Out of order or twice: what the next watch starts from never goes back.
    if (this.#from !== undefined && isOlder(event.resourceVersion, this.#from)) return;
    this.#from = event.resourceVersion;
    this.#newest = event.resourceVersion;
  }

  #failed(error: unknown): number {
    if (this.#options.signal.aborted) return 0;
    if (isExpired(error) && this.#from !== undefined) {
      this.#from = undefined;
      // Usual after an outage: there is nothing to wait for, unless the last list did not help either.
      if (this.#options.clock.monotonic() - this.#listedAtMs >= SHORT_LIVED_MS) {
        this.#failures = 0;
        return 0;
      }
    }
    if (error instanceof MalformedStreamError && ++this.#malformed >= MALFORMED_BEFORE_RELIST) {
      this.#malformed = 0;
      this.#from = undefined;
    }
    if (error instanceof CodedError && error.code === 'TooManyObjects') {
      this.#from = undefined;
      return this.#backoff(describe(error)) + TOO_MANY_MS * (0.5 + this.#options.random() / 2);
    }
    if (isNotFound(error)) {
      // The collection itself is gone: versions of a later one under the same name start over with a list.
      this.#from = undefined;
      if (this.#spec.optional) return this.#lookAgain();
    }
    const delayMs = this.#backoff(error === undefined ? 'the server ended the watch at once' : describe(error));
    return Math.max(delayMs, Math.min(askedDelayMs(error), LONGEST_RETRY_AFTER_MS));
  }

  #lookAgain(): number {
    const { log, random } = this.#options;
    if (this.#failures === 0) log.debug('the kind is not installed; looking again now and then', this.#fields());
    this.#sink.absent();
    this.#sink.alive();
    return backoffMs({ baseMs: 2_000, capMs: ABSENT_CAP_MS, attempt: this.#failures++, jitter: 'half', random });
  }

  #backoff(reason: string): number {
    const { log, random } = this.#options;
    this.#sink.failed(reason);
    const attempt = this.#failures++;
    // Half of it is fixed: never a hot loop, however the dice fall.
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
