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
import type { Resource } from '../../api/object.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import type { Store } from '../../kube/store.ts';
import { requestResource, typeNames } from '../access-requests.ts';
import { awaitedDecision, choicesOf } from '../choices.ts';
import { type ClusterConnection, inNamespace, serverNow } from '../cluster-connection.ts';
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

/** Resolves when the page has closed the call, or was too slow. */
export async function live({ query, connection, signal, line }: Call, clock: Clock): Promise<void> {
  const namespace = query.get('namespace') ?? undefined;
  if (namespace !== undefined && !isObjectName(namespace)) throw new Refusal(400, 'namespace is not a name');
  const end = new AbortController();
  const stream = new LiveStream(connection, clock, AbortSignal.any([signal, end.signal]), async (value) => {
    const cancel = clock.schedule(SLOW_MS, () => end.abort(new Error('the page takes nothing')));
    await line(value).finally(cancel);
  });
  try {
    await stream.run(namespace === undefined ? {} : { namespace });
  } finally {
    end.abort();
  }
}

class LiveStream {
  readonly #connection: ClusterConnection;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #send: (line: LiveLine) => Promise<void>;
  #requests: readonly FollowedRows<RequestRow>[] = [];
  #sessions: readonly FollowedRows<SessionRow>[] = [];
  /** Of requests that wait, by key: the row, and the choice that the page knows. */
  readonly #choices = new Map<string, { readonly of: RequestRow; readonly choice: string }>();
  #wake = (): void => undefined;

  constructor(
    connection: ClusterConnection,
    clock: Clock,
    signal: AbortSignal,
    send: (line: LiveLine) => Promise<void>,
  ) {
    this.#connection = connection;
    this.#clock = clock;
    this.#signal = signal;
    this.#send = send;
  }

  async run(scope: { readonly namespace?: string }): Promise<void> {
    await this.#watch(scope);
    let [isSynced, failing, beatAtMs] = [false, undefined as string | undefined, 0];
    let choicesAtMs = this.#clock.monotonic() + CHOICES_MS;
    try {
      while (!this.#signal.aborted) {
        await this.#sendChanges();
        const nowMs = this.#clock.monotonic();
        if (!isSynced && this.#hasAll()) {
          isSynced = true;
          await this.#send({ synced: true });
        }
        const failure = failureOf(this.#requests.map(({ store }) => store));
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

  async #watch(scope: { readonly namespace?: string }): Promise<void> {
    const [signal, changed] = [this.#signal, () => this.#wake()];
    const listed = await listable(this.#connection, [...requestKinds, accessSessions], scope);
    const kinds = requestKinds.filter((resource) => listed.includes(resource));
    // If the user may list neither kind, the watches say which permission is missing.
    this.#requests = (kinds.length > 0 ? kinds : requestKinds).map((resource) =>
      followRows(this.#connection, {
        resource,
        scope,
        signal,
        changed,
        toRow: (object) => ({
          row: requestRow(
            object,
            inNamespace(this.#connection, object.metadata.namespace ?? ''),
            serverNow(this.#connection, this.#clock),
          ),
          waiting: awaitedDecision(object) === undefined ? undefined : object,
        }),
      }),
    );
    this.#sessions = listed
      .filter((resource) => resource === accessSessions)
      .map((resource) =>
        followRows(this.#connection, {
          resource,
          scope,
          signal,
          changed,
          toRow: (object) => ({ row: sessionRow(object) }),
        }),
      );
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

  async #untilChange(): Promise<void> {
    if (![...this.#requests, ...this.#sessions].some(({ changes }) => changes.size > 0)) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.schedule(CHECK_MS, resolve);
        this.#signal.addEventListener('abort', () => resolve(), { once: true });
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
    }
    await sleep(this.#clock, BATCH_MS, this.#signal).catch(() => undefined);
  }
}

const requestKinds = typeNames.map(requestResource);

/** Those that the user may list and watch. Without an answer, all: the watch then says why. */
async function listable(
  { cluster }: ClusterConnection,
  resources: readonly Resource[],
  scope: { readonly namespace?: string },
): Promise<readonly Resource[]> {
  const answers = await Promise.all(
    resources.map(({ group, plural: resource }) =>
      cluster.own.isAllowed({ verb: 'list', group, resource, ...scope }).catch(() => true),
    ),
  );
  return resources.filter((_, index) => answers[index]);
}

/** Why the rows may be old: a kind that was listed before fails, or all kinds do. */
function failureOf(stores: readonly Pick<Store<never>, 'synced' | 'failing'>[]): string | undefined {
  const lost = stores.find(({ synced, failing }) => synced && failing);
  if (lost) return lost.failing?.reason;
  return stores.every(({ failing }) => failing) ? stores[0]?.failing?.reason : undefined;
}
