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
import type { KubeObject, Resource } from '../../api/object.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { unlessAborted } from '../../kit/promises.ts';
import type { OpenCluster } from '../../kube/open-cluster.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, choicesOf } from '../choices.ts';
import { type ClusterConnection, inNamespace, serverNow } from '../cluster-connection.ts';
import { problemOf } from '../problem.ts';
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

/** Rejects once the page has closed the call, or was too slow. */
export async function live({ query, connection, signal, line }: Call, clock: Clock): Promise<void> {
  const namespace = query.get('namespace') ?? undefined;
  if (namespace !== undefined && !isObjectName(namespace)) throw new Refusal(400, 'namespace is not a name');
  const end = new AbortController();
  const stop = AbortSignal.any([signal, end.signal]);
  const send = async (value: LiveLine): Promise<void> => {
    const cancel = clock.schedule(SLOW_MS, () => end.abort(new Error('the page takes no more lines')));
    await unlessAborted(line(value), stop).finally(cancel);
  };
  const scope = namespace === undefined ? {} : { namespace };
  try {
    await new LiveStream({ connection, clock, scope, signal: stop, send }).run();
  } finally {
    end.abort();
  }
}

interface LiveOptions {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  readonly scope: Scope;
  readonly signal: AbortSignal;
  readonly send: (line: LiveLine) => Promise<void>;
}

interface Scope {
  readonly namespace?: string;
}

class LiveStream {
  readonly #connection: ClusterConnection;
  readonly #clock: Clock;
  readonly #scope: Scope;
  readonly #signal: AbortSignal;
  readonly #send: (line: LiveLine) => Promise<void>;
  #requests: readonly FollowedRows<RequestRow>[] = [];
  #sessions: readonly FollowedRows<SessionRow>[] = [];
  /** Of requests that wait, by key: the row, and the choice that the page knows. */
  readonly #choices = new Map<string, { readonly of: RequestRow; readonly choice: string }>();
  #wake = (): void => undefined;
  #asked: Promise<void> | undefined;
  /** Why no kind could be listed yet. */
  #denial: string | undefined;

  constructor({ connection, clock, scope, signal, send }: LiveOptions) {
    this.#connection = connection;
    this.#clock = clock;
    this.#scope = scope;
    this.#signal = signal;
    this.#send = send;
  }

  async run(): Promise<void> {
    await this.#watch();
    let [isSynced, failing, beatAtMs] = [false, undefined as string | undefined, 0];
    let choicesAtMs = this.#clock.monotonic() + CHOICES_MS;
    try {
      for (;;) {
        await this.#sendChanges();
        const nowMs = this.#clock.monotonic();
        if (!isSynced && this.#hasAll()) {
          isSynced = true;
          await this.#send({ synced: true });
        }
        const failure = this.#failure();
        if (nowMs >= beatAtMs || failure !== failing) {
          await this.#send({ beat: { failing: failure, nowMs: serverNow(this.#connection, this.#clock) } });
          [failing, beatAtMs] = [failure, nowMs + BEAT_MS];
        }
        if (nowMs >= choicesAtMs) {
          choicesAtMs = nowMs + CHOICES_MS;
          this.#askChoicesAgain();
        }
        await this.#untilChange();
      }
    } finally {
      for (const { release } of [...this.#requests, ...this.#sessions]) release();
    }
  }

  async #watch(): Promise<void> {
    const { cluster } = this.#connection;
    const listed = await listable(cluster, [...requestKinds, accessSessions], this.#scope);
    const kinds = requestKinds.filter((resource) => listed.includes(resource));
    const options = { cluster, scope: this.#scope, signal: this.#signal, changed: () => this.#wake() };
    const toRow = (object: KubeObject) => {
      const own = inNamespace(this.#connection, object.metadata.namespace ?? '');
      const row = requestRow(object, own, serverNow(own, this.#clock));
      return awaitedDecision(object) === undefined ? { row } : { row, waiting: object };
    };
    // If the user may list neither kind, the watches say so.
    this.#requests = (kinds.length > 0 ? kinds : requestKinds).map((resource) =>
      followRows({ ...options, resource, toRow }),
    );
    if (listed.includes(accessSessions))
      this.#sessions = [
        followRows({ ...options, resource: accessSessions, toRow: (object) => ({ row: sessionRow(object) }) }),
      ];
  }

  async #sendChanges(): Promise<void> {
    for (const followed of this.#requests) {
      while (followed.changes.size > 0) {
        const { stored, removed } = takeChanges(followed, MAX_ROWS);
        const rows = stored.filter(({ waiting }) => !waiting).map(({ row }) => row);
        for (const key of [...removed, ...rows.map((row) => row.key)]) this.#choices.delete(key);
        if (rows.length + removed.length > 0) await this.#send({ requests: rows, removed });
        const waiting = await this.#withChoices(stored);
        if (waiting.length > 0) await this.#send({ requests: waiting });
      }
    }
    for (const followed of this.#sessions) {
      while (followed.changes.size > 0) {
        const { stored, removed } = takeChanges(followed, MAX_ROWS);
        await this.#send({ sessions: stored.map(({ row }) => row), removedSessions: removed });
      }
    }
  }

  /** Of those that wait, the rows that the page does not know so. */
  async #withChoices(stored: readonly StoredRow<RequestRow>[]): Promise<RequestRow[]> {
    const decisionOf = choicesOf(this.#connection);
    const rows = stored.map(async ({ row, waiting }): Promise<RequestRow | undefined> => {
      if (!waiting) return undefined;
      // A failed call leaves the choice empty until the next question.
      const decision = await decisionOf(waiting).catch(() => undefined);
      const decided = withDecision(row, waiting, decision, serverNow(this.#connection, this.#clock));
      const known = this.#choices.get(row.key);
      if (known?.of === row && known.choice === decided.choice) return undefined;
      this.#choices.set(row.key, { of: row, choice: decided.choice });
      return decided;
    });
    return (await Promise.all(rows)).filter((row) => row !== undefined);
  }

  #askChoicesAgain(): void {
    for (const { store, changes } of this.#requests)
      for (const stored of store.list())
        if (stored.waiting && !changes.has(stored.row.key)) changes.set(stored.row.key, stored);
  }

  #hasAll(): boolean {
    return [...this.#requests, ...this.#sessions].every(
      ({ store, changes }) => changes.size === 0 && (store.synced || store.failing !== undefined),
    );
  }

  /** Why the rows may be old: a kind that was listed before fails, or all kinds do. */
  #failure(): string | undefined {
    const stores = this.#requests.map(({ store }) => store);
    const lost = stores.find(({ synced, failing }) => synced && failing);
    if (lost || !stores.every(({ failing }) => failing)) return lost?.failing?.reason;
    this.#asked ??= this.#askWhy();
    return this.#denial ?? stores[0]?.failing?.reason;
  }

  /** The problem of a list says what to do, and that of a watch does not. */
  async #askWhy(): Promise<void> {
    const { own } = this.#connection.cluster;
    const pages = own.pages(requestResource('pod'), { ...this.#scope, limit: 1 });
    await pages[Symbol.asyncIterator]()
      .next()
      .catch((error: unknown) => {
        this.#denial = problemOf(error).message;
      });
  }

  async #untilChange(): Promise<void> {
    if (![...this.#requests, ...this.#sessions].some(({ changes }) => changes.size > 0)) {
      const change = new Promise<void>((resolve) => {
        const cancel = this.#clock.schedule(CHECK_MS, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
      await unlessAborted(change, this.#signal);
    }
    await sleep(this.#clock, BATCH_MS, this.#signal);
  }
}

const requestKinds = typeNames.map(requestResource);

/** Those that the user may list and watch. Without an answer, all: the watch then says why. */
async function listable(
  { own }: OpenCluster,
  resources: readonly Resource[],
  scope: Scope,
): Promise<readonly Resource[]> {
  const answers = await Promise.all(
    resources.map(({ group, plural: resource }) =>
      own.isAllowed({ verb: 'list', group, resource, ...scope }).catch(() => true),
    ),
  );
  return resources.filter((_, index) => answers[index]);
}
