// The live stream of one page:
//
//   watches ──> changes by key ──(100 ms, 500 rows)──> lines ──> page
//                  ^                                     │
//                  └──────── wait while the page is slow ┘
//
// A change that the page has not taken is replaced by the next one of its row, so a slow page costs
// no more memory than a quick one.

import { accessSessions } from '../../api/access/access-session.ts';
import type { KubeObject, Resource } from '../../api/object.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { own } from '../../kit/json-value.ts';
import { unlessAborted, withDeadline } from '../../kit/promises.ts';
import { isForbidden } from '../../kube/errors.ts';
import type { Projected, StoreHandle } from '../../kube/store.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, choicesOf } from '../choices.ts';
import { type ClusterConnection, inNamespace, serverNow } from '../cluster-connection.ts';
import { isNotServed, problemOf } from '../problem.ts';
import { type Call, nameIn } from './call.ts';
import { requestRow, sessionRow, withDecision } from './rows.ts';
import type { LiveLine, RequestRow, SessionRow } from './wire.ts';

const MAX_ROWS = 500;
const BATCH_MS = 100;
const FIRST_MS = 10;
/** How often it looks whether the watches fail. */
const CHECK_MS = 1000;
/** Of the question whether the API server is alive. */
const ANSWER_MS = 4000;
const BEAT_MS = 5000;
/** Permissions and templates change, too, so what the user can decide is asked again. */
const CHOICES_MS = 30_000;
/** A page that takes nothing for longer must connect again. */
const SLOW_MS = 30_000;
/** After this, a kind that never was listed, unlike others, is denied or not served. */
const GIVE_UP_MS = 10_000;

/** Rejects once the page has closed the call, or was too slow. */
export async function live({ query, connection, signal: closed, line }: Call, clock: Clock): Promise<void> {
  const namespace = nameIn(query, 'namespace');
  const end = new AbortController();
  const signal = AbortSignal.any([closed, end.signal]);
  const send = async (value: LiveLine): Promise<void> => {
    const cancel = clock.schedule(SLOW_MS, () => end.abort(new Error('the page takes no more lines')));
    await unlessAborted(line(value), signal).finally(cancel);
  };
  const scope = namespace === undefined ? {} : { namespace };
  const stream = new LiveStream({ connection, clock, scope, signal, send });
  try {
    await Promise.all([stream.sendRows(), stream.sendBeats()]);
  } finally {
    stream.release();
    end.abort();
  }
}

interface LiveOptions {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  readonly scope: { readonly namespace?: string };
  readonly signal: AbortSignal;
  readonly send: (line: LiveLine) => Promise<void>;
}

class LiveStream {
  readonly #options: LiveOptions;
  readonly #requests: readonly FollowedRows<RequestRow>[];
  readonly #sessions: FollowedRows<SessionRow>;
  /** Of requests that wait, by key: the row, and the choice that the page knows. */
  readonly #choices = new Map<string, { readonly of: RequestRow; readonly choice: string }>();
  /** Why a kind cannot be listed; `about`: what the watch said. */
  #denial: { readonly about: string; readonly message?: string; readonly isFinal?: boolean } | undefined;
  /** Why the API server does not answer. */
  #silence: string | undefined;
  #wake = (): void => undefined;

  constructor(options: LiveOptions) {
    this.#options = options;
    const onChange = (): void => this.#wake();
    const toRow = (object: KubeObject) => {
      const connection = inNamespace(options.connection, object.metadata.namespace ?? '');
      const row = requestRow(object, connection, this.#now);
      return awaitedDecision(object) === undefined ? { row } : { row, waiting: object };
    };
    const follow = (resource: Resource) => followRows(options, resource, toRow, onChange);
    this.#requests = typeNames.map((type) => follow(requestResource(type)));
    this.#sessions = followRows(options, accessSessions, (object) => ({ row: sessionRow(object) }), onChange);
  }

  async sendRows(): Promise<void> {
    const { clock, send } = this.#options;
    let [hasSynced, choicesAtMs] = [false, clock.monotonic() + CHOICES_MS];
    for (;;) {
      for (const { changes } of this.#requests) while (changes.size > 0) await this.#sendRequests(changes);
      const { changes } = this.#sessions;
      while (changes.size > 0) {
        const [stored, removedSessions] = take(changes);
        await send({ sessions: stored.map(({ row }) => row), removedSessions });
      }
      if (!hasSynced && this.#isSynced()) {
        hasSynced = true;
        await send({ synced: true });
      }
      if (clock.monotonic() >= choicesAtMs) {
        choicesAtMs += CHOICES_MS;
        for (const { store, changes } of this.#requests)
          for (const stored of store.list())
            if (stored.waiting && !changes.has(stored.row.key)) changes.set(stored.row.key, stored);
      }
      await this.#untilChange(hasSynced);
    }
  }

  async sendBeats(): Promise<void> {
    const { clock, signal, send } = this.#options;
    let [sent, beatAtMs] = [undefined as string | undefined, 0];
    for (;;) {
      const isDue = clock.monotonic() >= beatAtMs;
      if (isDue) beatAtMs = clock.monotonic() + BEAT_MS;
      if (isDue) void this.#askWhetherAlive();
      const failing = this.#failure() ?? this.#silence;
      if (isDue || failing !== sent) await send({ beat: { failing, nowMs: this.#now } });
      sent = failing;
      await sleep(clock, CHECK_MS, signal);
    }
  }

  release(): void {
    for (const { release } of this.#all) release();
  }

  get #all(): readonly FollowedRows<unknown>[] {
    return [...this.#requests, this.#sessions];
  }

  get #now(): number {
    return serverNow(this.#options.connection, this.#options.clock);
  }

  async #sendRequests(changes: FollowedRows<RequestRow>['changes']): Promise<void> {
    const { connection, send } = this.#options;
    const [stored, removed] = take(changes);
    const rows = stored.filter(({ waiting }) => !waiting).map(({ row }) => row);
    for (const key of [...removed, ...rows.map((row) => row.key)]) this.#choices.delete(key);
    // Before the questions of the others.
    if (rows.length + removed.length > 0) await send({ requests: rows, removed });
    const decisionOf = choicesOf(connection);
    const requests = (await Promise.all(stored.map((one) => this.#decided(one, decisionOf)))).flat();
    if (requests.length > 0) await send({ requests });
  }

  /** A row that waits, unless the page knows it so. After a failed call, with the choice it knows. */
  async #decided({ row, waiting }: StoredRow<RequestRow>, decisionOf: ReturnType<typeof choicesOf>) {
    if (!waiting) return [];
    const known = this.#choices.get(row.key);
    const decided = await decisionOf(waiting).then(
      (decision) => withDecision(row, waiting, decision, this.#now),
      () => ({ ...row, choice: known?.choice ?? '' }),
    );
    if (known?.of === row && known.choice === decided.choice) return [];
    this.#choices.set(row.key, { of: row, choice: decided.choice });
    return [decided];
  }

  /** Never while the cluster cannot be reached: the page keeps its older rows until then. */
  #isSynced(): boolean {
    if (!this.#denial?.isFinal && !this.#requests.some(({ store }) => store.synced)) return false;
    return this.#isQuiet() && this.#all.every(({ store }) => store.synced || store.failing);
  }

  /** Why the rows may be old: a kind that was listed fails, or none can be listed. */
  #failure(): string | undefined {
    const isListed = this.#requests.some(({ store }) => store.synced);
    for (const { store, release } of this.#all)
      if (isListed && !store.synced && (store.failing?.forMs ?? 0) > GIVE_UP_MS) release();
    const { failing } = this.#requests.find(({ store }) => store.failing && store.synced === isListed)?.store ?? {};
    if (failing && this.#denial?.about !== failing.reason) void this.#askWhy(failing.reason);
    return failing && (this.#denial?.message ?? failing.reason);
  }

  /** The watches of a cluster that hangs are silent for minutes. */
  async #askWhetherAlive(): Promise<void> {
    const { connection, clock, signal } = this.#options;
    try {
      await withDeadline(clock, ANSWER_MS, connection.cluster.own.whoAmI({ signal }));
      this.#silence = undefined;
    } catch (error) {
      const isSilent = own(error, 'code') === 'DeadlineExceeded';
      this.#silence = isSilent ? 'the API server does not answer' : problemOf(error).message;
    }
  }

  /** The problem of a list says what to do, and the error of a watch does not. */
  async #askWhy(about: string): Promise<void> {
    this.#denial = { about };
    const { connection, scope } = this.#options;
    const pages = connection.cluster.own.pages(requestResource('pod'), { ...scope, limit: 1 });
    try {
      await pages[Symbol.asyncIterator]().next();
    } catch (error) {
      const isFinal = isForbidden(error) || isNotServed(error);
      this.#denial = { about, message: problemOf(error).message, isFinal };
    }
  }

  #isQuiet(): boolean {
    return this.#all.every(({ changes }) => changes.size === 0);
  }

  /** `hasAll`: the page has rows to look at, so the next ones can wait for more. */
  async #untilChange(hasAll: boolean): Promise<void> {
    const { clock, signal } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const cancel = clock.schedule(CHECK_MS, resolve);
    if (this.#isQuiet()) await unlessAborted(promise, signal);
    cancel();
    if (!this.#isQuiet()) await sleep(clock, hasAll ? BATCH_MS : FIRST_MS, signal);
  }
}

/** The next rows, and the keys of those that are gone. */
function take<R>(changes: FollowedRows<R>['changes']) {
  const taken = [...changes].slice(0, MAX_ROWS);
  for (const [key] of taken) changes.delete(key);
  const removed = taken.filter(([, stored]) => !stored).map(([key]) => key);
  return [taken.flatMap(([, stored]) => stored ?? []), removed] as const;
}

interface StoredRow<R> extends Projected {
  readonly row: R;
  /** The request, if it waits for a decision. */
  readonly waiting?: KubeObject | undefined;
}

interface FollowedRows<R> extends StoreHandle<StoredRow<R>> {
  /** What the page does not know yet, by the key of the row; undefined if it is gone. */
  readonly changes: Map<string, StoredRow<R> | undefined>;
}

/** Watches a kind. Its rows are in `changes` as the pages of the first list arrive. */
function followRows<R extends { readonly key: string }>(
  { connection, scope, signal }: LiveOptions,
  resource: Resource,
  toRow: (object: KubeObject) => Pick<StoredRow<R>, 'row' | 'waiting'>,
  onChange: () => void,
): FollowedRows<R> {
  const changes = new Map<string, StoredRow<R> | undefined>();
  const change = (key: string, stored: StoredRow<R> | undefined): void => {
    changes.set(key, stored);
    onChange();
  };
  /** Of the first list, until it is complete: the store shows it only then. */
  let early: Map<string, StoredRow<R>> | undefined = new Map();
  // A function of this page alone, so that no other page shares the store.
  const project = (object: KubeObject): StoredRow<R> => {
    const { uid = '', resourceVersion = '' } = object.metadata;
    const { row, waiting } = toRow(object);
    const stored = { key: row.key, uid, resourceVersion, row, waiting };
    if (early?.set(row.key, stored)) change(row.key, stored);
    return stored;
  };
  const handle = connection.cluster.watch({ resource, ...scope, project });
  const onSynced = (): void => {
    const before = early;
    early = undefined;
    const existing = new Set<string>();
    handle.store.subscribe((event) => {
      const { key } = (event.type === 'deleted' ? event.before : event.now).row;
      existing.add(key);
      if (event.type === 'deleted') change(key, undefined);
      else if (before?.get(key) !== event.now) change(key, event.now);
    });
    // An object was gone when the list began anew.
    for (const key of before?.keys() ?? []) if (!existing.has(key)) change(key, undefined);
  };
  // It rejects only once the page has left.
  handle.store.whenSynced(signal).then(onSynced, () => undefined);
  return { ...handle, changes };
}
