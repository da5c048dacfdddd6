import { type Access, accesses, accessOfRequest } from '../../api/access/kinds.ts';
import { childNameOf } from '../../api/access/names.ts';
import { keyOf } from '../../api/object.ts';
import { after, at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Emit, Source } from '../../engine/source.ts';
import type { Clock } from '../../kit/clock.ts';
import { STALE_MS, type StoreEvent } from '../../kube/store.ts';
import { type Outbox, type Pending, settledAfterMs } from '../outbox/outbox.ts';
import {
  byNamespace,
  byProvider,
  byUid,
  type NotifiedRequest,
  type NotifyStores,
  type ProviderView,
  type SubscriptionView,
} from '../stores.ts';
import { type Delivery, deliveriesOf, subscriptionsIn } from './deliveries-of.ts';
import { type FoundFact, factsOf, type RequestContext, sessionFactsOf } from './facts-of.ts';
import { Remembered, rememberedMs } from './remembered.ts';

interface FactsDeps {
  readonly stores: NotifyStores;
  readonly addressOf: (username: string) => string | undefined;
  readonly clock: Clock;
  /** Of the present leadership. */
  readonly outbox: () => Outbox;
  readonly onOffered: (delivery: Delivery) => void;
  /** There is no room for it; the request keeps the fact. */
  readonly onFull: (delivery: Delivery) => void;
  readonly onMoot: (pending: Pending) => void;
}

/** How long facts for which the outbox has no room stay with their request. */
const fullMs = 30_000;

type KnownRequest = RequestContext & { readonly view: NotifiedRequest };

/**
 * Finds what there is to tell of a request or session, and offers it to the outbox. Keys are uids.
 * Nothing is written on the objects: what was offered is in memory and, of the leaders before, in
 * the outbox.
 */
export class FactsReconciler implements Reconciler {
  readonly #deps: FactsDeps;
  readonly #remembered: Remembered;
  /** By the uid of the object, and the id of the fact: since when it is known. */
  readonly #known = new Map<string, Map<string, number>>();
  /** By uid: since when it waits for a reconcile, oldest first. 0: since before this leadership. */
  readonly #waiting = new Map<string, number>();
  #seenMs = 0;

  constructor(deps: FactsDeps) {
    this.#deps = deps;
    this.#remembered = new Remembered(deps.stores, deps.clock);
  }

  /** Until then, all facts were offered; 0 until the first round is over. */
  get seenMs(): number {
    const { stores, clock } = this.#deps;
    if (stores.all.some(({ ageMs }) => ageMs > STALE_MS)) return this.#seenMs;
    const [oldestMs] = this.#waiting.values();
    this.#seenMs = Math.min(clock.now(), oldestMs ?? Number.POSITIVE_INFINITY);
    return this.#seenMs;
  }

  readonly source: Source = { name: 'facts', start: (emit, signal) => this.#start(emit, signal) };

  reconcile(uid: string): Promise<Result> {
    return Promise.resolve(this.#reconcile(uid));
  }

  async #start(emit: Emit, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { stores, clock } = this.#deps;
    this.#known.clear();
    this.#waiting.clear();
    this.#seenMs = 0;
    let isFirstRound = true;
    // Holds the time back until the last store has synced.
    this.#waiting.set('', 0);
    const add = (uid: string): void => {
      if (!this.#waiting.has(uid)) this.#waiting.set(uid, isFirstRound ? 0 : clock.now());
      emit(uid, 'changed');
    };
    const addNamespace = (namespace: string): void => {
      for (const store of [...stores.requests, stores.sessions]) {
        for (const { uid } of store.byIndex(byNamespace, namespace)) add(uid);
      }
    };
    const addObject = (event: StoreEvent<{ readonly uid: string }>): void =>
      add(event.type === 'deleted' ? event.before.uid : event.now.uid);
    const unsubscribe = [
      ...stores.requests.map((store) => store.subscribe(addObject)),
      stores.sessions.subscribe(addObject),
      stores.subscriptions.subscribe((event) => {
        if (isChange(event)) addNamespace(event.now.namespace);
      }),
      stores.providers.subscribe((event) => {
        if (!isChange(event)) return;
        for (const { namespace } of stores.subscriptions.byIndex(byProvider, event.key)) addNamespace(namespace);
      }),
    ];
    signal.addEventListener('abort', () => {
      for (const end of unsubscribe) end();
    });
    for (const uid of [...this.#remembered.requests.keys(), ...this.#remembered.sessions.keys()]) add(uid);
    await Promise.all(stores.all.map((store) => store.whenSynced(signal)));
    isFirstRound = false;
    this.#waiting.delete('');
  }

  #reconcile(uid: string): Result {
    const { clock, outbox, onMoot } = this.#deps;
    const nowMs = clock.now();
    const found = this.#find(uid, nowMs);
    if (!found) {
      this.#waiting.delete(uid);
      this.#known.delete(uid);
      return done;
    }
    const { facts, nextAtMs, context } = found;
    if (!found.isSession) for (const moot of outbox().keepOnly(uid, new Set(facts.map(({ id }) => id)))) onMoot(moot);
    if (!facts.every((fact) => this.#offer(uid, fact, context, nowMs))) return after(fullMs);
    this.#waiting.delete(uid);
    if (nextAtMs !== undefined) return at(nextAtMs);
    return found.isDeleted ? after(rememberedMs) : done;
  }

  /** False if there is no room. */
  #offer(uid: string, fact: FoundFact, request: KnownRequest | undefined, nowMs: number): boolean {
    const { stores, addressOf, outbox, onOffered, onFull } = this.#deps;
    const known = this.#known.get(uid) ?? new Map<string, number>();
    this.#known.set(uid, known);
    const sinceMs = known.get(fact.id) ?? (fact.atMs <= outbox().floorMs ? 0 : nowMs);
    known.set(fact.id, sinceMs);
    if (nowMs - sinceMs > settledAfterMs) return true;
    const subscriptions = subscriptionsIn(stores.subscriptions, fact.request.namespace);
    const labels = request?.template?.labels ?? {};
    for (const delivery of deliveriesOf(fact, { providers: stores.providers, subscriptions, labels, addressOf })) {
      if (outbox().knows(delivery)) continue;
      if (!outbox().offer(delivery, nowMs)) {
        // The time to match it begins when there is room.
        known.delete(fact.id);
        onFull(delivery);
        return false;
      }
      onOffered(delivery);
    }
    return true;
  }

  #find(uid: string, nowMs: number) {
    const request = this.#request(uid);
    if (request) {
      const isDeleted = request.deletedAtMs !== undefined;
      return { ...factsOf(request.view, request, nowMs), context: request, isDeleted, isSession: false };
    }
    const [view] = this.#deps.stores.sessions.byIndex(byUid, uid);
    const gone = this.#remembered.sessions.get(uid);
    const session = view ?? gone?.view;
    if (!session) return undefined;
    const context = this.#requestOf(session);
    const deletedAtMs = view ? undefined : gone?.deletedAtMs;
    const found = sessionFactsOf(session, context, deletedAtMs, nowMs);
    return { ...found, context, isDeleted: !view, isSession: true };
  }

  #request(uid: string): KnownRequest | undefined {
    for (const store of this.#deps.stores.requests) {
      const [view] = store.byIndex(byUid, uid);
      if (view) return { view, template: this.#template(view) };
    }
    const gone = this.#remembered.requests.get(uid);
    return gone && { ...gone, template: this.#template(gone.view) };
  }

  /** Its name may belong to another request by now. */
  #requestOf({
    namespace,
    spec,
  }: {
    readonly namespace: string;
    readonly spec: SessionGrant;
  }): KnownRequest | undefined {
    const { requests } = this.#deps.stores;
    const { kind, name } = spec.request;
    const present = requests[positionOf(accessOfRequest(kind))]?.get(keyOf({ namespace, name }));
    const isIts = (view: NotifiedRequest | undefined): boolean =>
      view?.kind === kind && view.namespace === namespace && childNameOf(view) === spec.grant;
    if (isIts(present)) return this.#request(present?.uid ?? '');
    const gone = this.#remembered.requests.keys().find((uid) => isIts(this.#remembered.requests.get(uid)?.view));
    return gone === undefined ? undefined : this.#request(gone);
  }

  #template({ kind, namespace, spec }: NotifiedRequest) {
    const access = accessOfRequest(kind);
    const key = keyOf({ namespace, name: spec.templateName });
    const present = this.#deps.stores.templates[positionOf(access)]?.get(key);
    const goneKey = keyOf({ namespace: access.template.resource.kind, name: key });
    return present ?? this.#remembered.templates.get(goneKey)?.view;
  }
}

interface SessionGrant {
  readonly grant: string;
  readonly request: { readonly kind: NotifiedRequest['kind']; readonly name: string };
}

const positionOf = (access: Access): number => accesses.indexOf(access);

/** Not of the status, which this process writes. */
const isChange = <View extends ProviderView | SubscriptionView>(
  event: StoreEvent<View>,
): event is Extract<StoreEvent<View>, { now: View }> =>
  event.type === 'added' || (event.type === 'updated' && event.before.generation !== event.now.generation);
