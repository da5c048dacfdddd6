// The live stream of one page:
//
//   watches ──> changes by key ──(100 ms, 500 rows)──> lines ──> page
//                  ^                                     │
//                  └──────── wait while the page is slow ┘
//
// A change that the page has not taken is replaced by the next one of its row, so a slow page costs
// no more memory than a quick one.

import { isObjectName } from '../../access/policy/names.ts';
import { accessSessions } from '../../api/access/access-session.ts';
import type { KubeObject } from '../../api/object.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { unlessAborted } from '../../kit/promises.ts';
import { isForbidden } from '../../kube/errors.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, choicesOf } from '../choices.ts';
import { type ClusterConnection, inNamespace, serverNow } from '../cluster-connection.ts';
import { isNotServed, problemOf } from '../problem.ts';
import { type Call, Refusal } from './call.ts';
import { type FollowedRows, followRows, type StoredRow, takeChanges } from './followed-rows.ts';
import { requestRow, sessionRow, withDecision } from './rows.ts';
import type { LiveLine, RequestRow, SessionRow } from './wire.ts';

const MAX_ROWS = 500;
const BATCH_MS = 100;
/** How often it looks whether the watches fail. */
const CHECK_MS = 1000;
const BEAT_MS = 5000;
/** Permissions and templates change, too, so what the user can decide is asked again. */
const CHOICES_MS = 30_000;
/** A page that takes nothing for longer must connect again. */
const SLOW_MS = 30_000;
/** After this, a kind that never was listed, unlike others, is denied or not served. */
const GIVE_UP_MS = 10_000;

type Send = (line: LiveLine) => Promise<void>;

/** Rejects once the page has closed the call, or was too slow. */
export async function live({ query, connection, signal, line }: Call, clock: Clock): Promise<void> {
  const namespace = query.get('namespace') ?? undefined;
  if (namespace !== undefined && !isObjectName(namespace)) throw new Refusal(400, 'namespace is not a name');
  const end = new AbortController();
  const stop = AbortSignal.any([signal, end.signal]);
  const send: Send = async (value) => {
    const cancel = clock.schedule(SLOW_MS, () => end.abort(new Error('the page takes no more lines')));
    await unlessAborted(line(value), stop).finally(cancel);
  };
  const scope = namespace === undefined ? {} : { namespace };
  const stream = new LiveStream(connection, clock, scope, stop);
  try {
    await stream.run(send);
  } finally {
    stream.release();
    end.abort();
  }
}

class LiveStream {
  readonly #connection: ClusterConnection;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #scope: { readonly namespace?: string };
  readonly #requests: FollowedRows<RequestRow>[];
  readonly #sessions: FollowedRows<SessionRow>[];
  /** Of requests that wait, by key: the row, and the choice that the page knows. */
  readonly #choices = new Map<string, { readonly of: RequestRow; readonly choice: string }>();
  /** Why a kind cannot be listed; `about`: what the watch said. */
  #denial: { readonly about: string; readonly message?: string; readonly isFinal?: boolean } | undefined;
  #wake = (): void => undefined;

  constructor(
    connection: ClusterConnection,
    clock: Clock,
    scope: { readonly namespace?: string },
    signal: AbortSignal,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#scope = scope;
    this.#signal = signal;
    const options = { cluster: connection.cluster, scope, signal, changed: () => this.#wake() };
    const toRow = (object: KubeObject) => {
      const own = inNamespace(connection, object.metadata.namespace ?? '');
      const row = requestRow(object, own, serverNow(own, clock));
      return awaitedDecision(object) === undefined ? { row } : { row, waiting: object };
    };
    this.#requests = typeNames.map((type) => followRows({ ...options, resource: requestResource(type), toRow }));
    const toSession = (object: KubeObject) => ({ row: sessionRow(object) });
    this.#sessions = [followRows({ ...options, resource: accessSessions, toRow: toSession })];
  }

  async run(send: Send): Promise<void> {
    await Promise.all([this.#sendRows(send), this.#sendBeats(send)]);
  }

  release(): void {
    for (const { release } of this.#all) release();
  }

  get #all(): readonly FollowedRows<unknown>[] {
    return [...this.#requests, ...this.#sessions];
  }

  async #sendBeats(send: Send): Promise<void> {
    let [failing, beatAtMs] = [undefined as string | undefined, 0];
    for (;;) {
      const nowMs = this.#clock.monotonic();
      const failure = this.#failure();
      if (nowMs >= beatAtMs || failure !== failing) {
        await send({ beat: { failing: failure, nowMs: serverNow(this.#connection, this.#clock) } });
        [failing, beatAtMs] = [failure, nowMs + BEAT_MS];
      }
      await sleep(this.#clock, CHECK_MS, this.#signal);
    }
  }

  async #sendRows(send: Send): Promise<void> {
    let [hasSynced, choicesAtMs] = [false, this.#clock.monotonic() + CHOICES_MS];
    for (;;) {
      await this.#sendChanges(send);
      if (!hasSynced && this.#isSynced()) {
        hasSynced = true;
        await send({ synced: true });
      }
      if (this.#clock.monotonic() >= choicesAtMs) {
        choicesAtMs += CHOICES_MS;
        this.#askChoicesAgain();
      }
      await this.#untilChange();
    }
  }

  async #sendChanges(send: Send): Promise<void> {
    for (const followed of this.#requests) {
      while (followed.changes.size > 0) {
        const { stored, removed } = takeChanges(followed, MAX_ROWS);
        const rows = stored.filter(({ waiting }) => !waiting).map(({ row }) => row);
        for (const key of [...removed, ...rows.map((row) => row.key)]) this.#choices.delete(key);
        if (rows.length + removed.length > 0) await send({ requests: rows, removed });
        const waiting = await this.#withChoices(stored);
        if (waiting.length > 0) await send({ requests: waiting });
      }
    }
    for (const followed of this.#sessions) {
      while (followed.changes.size > 0) {
        const { stored, removed } = takeChanges(followed, MAX_ROWS);
        await send({ sessions: stored.map(({ row }) => row), removedSessions: removed });
      }
    }
  }

  /** Of those that wait, the rows that the page does not know so. */
  async #withChoices(stored: readonly StoredRow<RequestRow>[]): Promise<RequestRow[]> {
    const decisionOf = choicesOf(this.#connection);
    const rows = stored.map(async ({ row, waiting }): Promise<readonly RequestRow[]> => {
      if (!waiting) return [];
      const known = this.#choices.get(row.key);
      const decided = await decisionOf(waiting).then(
        (decision) => withDecision(row, waiting, decision, serverNow(this.#connection, this.#clock)),
        // Until it is asked again.
        () => ({ ...row, choice: known?.choice ?? '' }),
      );
      if (known?.of === row && known.choice === decided.choice) return [];
      this.#choices.set(row.key, { of: row, choice: decided.choice });
      return [decided];
    });
    return (await Promise.all(rows)).flat();
  }

  #askChoicesAgain(): void {
    for (const { store, changes } of this.#requests)
      for (const stored of store.list())
        if (stored.waiting && !changes.has(stored.row.key)) changes.set(stored.row.key, stored);
  }

  /** Why the rows may be old: a kind that was listed fails, or none can be listed. */
  #failure(): string | undefined {
    const isListed = this.#requests.some(({ store }) => store.synced);
    for (const { store, release } of this.#all)
      if (isListed && !store.synced && (store.failing?.forMs ?? 0) > GIVE_UP_MS) release();
    const { failing } = this.#requests.find(({ store }) => store.failing && store.synced === isListed)?.store ?? {};
    if (!failing) return undefined;
    if (this.#denial?.about !== failing.reason) void this.#askWhy(failing.reason);
    return this.#denial?.message ?? failing.reason;
  }

  /** The problem of a list says what to do, and the error of a watch does not. */
  async #askWhy(about: string): Promise<void> {
    this.#denial = { about };
    const pages = this.#connection.cluster.own.pages(requestResource('pod'), { ...this.#scope, limit: 1 });
    const onError = (error: unknown): void => {
      const isFinal = isForbidden(error) || isNotServed(error);
      this.#denial = { about, message: problemOf(error).message, isFinal };
    };
    await pages[Symbol.asyncIterator]().next().catch(onError);
  }

  /** Never while the cluster cannot be reached: the page keeps its older rows until then. */
  #isSynced(): boolean {
    if (!this.#denial?.isFinal && !this.#requests.some(({ store }) => store.synced)) return false;
    return this.#all.every(({ store, changes }) => changes.size === 0 && (store.synced || store.failing));
  }

  async #untilChange(): Promise<void> {
    const isQuiet = (): boolean => this.#all.every(({ changes }) => changes.size === 0);
    if (isQuiet()) {
      const change = new Promise<void>((resolve) => {
        const cancel = this.#clock.schedule(CHECK_MS, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
      await unlessAborted(change, this.#signal);
    }
    if (!isQuiet()) await sleep(this.#clock, BATCH_MS, this.#signal);
  }
}
