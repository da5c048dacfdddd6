import { accesses, accessOfRequest } from '../../api/access/kinds.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { after, at, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Emit, Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Clock } from '../../kit/clock.ts';
import { RecentMap } from '../../kit/recent-map.ts';
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
import { rememberDeleted } from './remembered.ts';

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

/** Waits until all stores have synced. */
const firstRound = '';

type KnownRequest = RequestContext & { readonly view: NotifiedRequest };

/**
 * Finds what there is to tell of a request or session, and offers it to the outbox. Keys are uids.
 * Nothing is written on the objects: what was offered is in memory and, of the leaders before, in
 * the outbox.
 */
export class FactsReconciler implements Reconciler {
  readonly #deps: FactsDeps;
  /** Deleted ones: by uid; templates by kind and `namespace/name`, because requests may outlive them. */
  readonly #gone;
  /** By the id of a fact: since when it is known. */
  readonly #known = new RecentMap<string, number>(100_000);
  /** By uid: since when it waits for a reconcile, oldest first. 0: since before this leadership. */
  readonly #waiting = new Map<string, number>();
  #seenMs = 0;

  constructor(deps: FactsDeps) {
    this.#deps = deps;
    const { stores, clock } = deps;
    const uidOf = ({ uid }: { readonly uid: string }): string => uid;
    this.#gone = {
      requests: rememberDeleted(stores.requests, clock, uidOf),
      sessions: rememberDeleted([stores.sessions], clock, uidOf),
      templates: rememberDeleted(stores.templates, clock, ({ key }, { resource }) => `${resource.kind}/${key}`),
    };
  }

  /** Until then, all facts were offered; 0 until the first round is over. */
  get seenMs(): number {
    const { stores, clock } = this.#deps;
    if (stores.all.some(({ ageMs }) => ageMs > STALE_MS)) return this.#seenMs;
    const [oldestMs] = this.#waiting.values();
    this.#seenMs = Math.min(clock.now(), oldestMs ?? Number.POSITIVE_INFINITY);
    return this.#seenMs;
  }

  get sources(): readonly Source[] {
    const { stores } = this.#deps;
    const ofObject = (event: StoreEvent<{ readonly uid: string }>): string[] => [
      this.#waits(event.type === 'deleted' ? event.before.uid : event.now.uid),
    ];
    const ofNamespace = (namespace: string): string[] =>
      [...stores.requests, stores.sessions].flatMap((store) =>
        store.byIndex(byNamespace, namespace).map(({ uid }) => this.#waits(uid)),
      );
    return [
      { name: 'deleted', start: (emit) => this.#start(emit) },
      ...stores.requests.map((store) => fromSubscription('request', store, ofObject)),
      fromSubscription('session', stores.sessions, ofObject),
      fromSubscription('subscription', stores.subscriptions, (event) =>
        isChange(event) ? ofNamespace(nameOf(event.key).namespace ?? '') : [],
      ),
      fromSubscription('provider', stores.providers, (event) => {
        const subscriptions = isChange(event) ? stores.subscriptions.byIndex(byProvider, event.key) : [];
        return subscriptions.flatMap(({ namespace }) => ofNamespace(namespace));
      }),
      {
        name: 'synced',
        start: async (_, signal) => {
          await Promise.all(stores.all.map((store) => store.whenSynced(signal)));
          this.#waiting.delete(firstRound);
        },
      },
    ];
  }

  async #start(emit: Emit): Promise<void> {
    this.#known.clear();
    this.#waiting.clear();
    this.#seenMs = 0;
    this.#waiting.set(firstRound, 0);
    for (const uid of [...this.#gone.requests.keys(), ...this.#gone.sessions.keys()]) emit(this.#waits(uid), 'deleted');
  }

  #waits(uid: string): string {
    const sinceMs = this.#waiting.has(firstRound) ? 0 : this.#deps.clock.now();
    if (!this.#waiting.has(uid)) this.#waiting.set(uid, sinceMs);
    return uid;
  }

  async reconcile(uid: string): Promise<Result> {
    const { clock, outbox, onMoot } = this.#deps;
    const nowMs = clock.now();
    const found = this.#find(uid, nowMs);
    if (!found) {
      this.#waiting.delete(uid);
      return done;
    }
    const { facts, nextAtMs, context } = found;
    for (const moot of outbox().keepOnly(uid, new Set(facts.map(({ id }) => id)))) onMoot(moot);
    if (facts.filter((fact) => !this.#offer(fact, context, nowMs)).length > 0) return after(fullMs);
    this.#waiting.delete(uid);
    return nextAtMs === undefined ? done : at(nextAtMs);
  }

  /** False if one has no room. */
  #offer(fact: FoundFact, request: KnownRequest | undefined, nowMs: number): boolean {
    const { stores, addressOf, outbox, onOffered, onFull } = this.#deps;
    const sinceMs = this.#known.get(fact.id) ?? (fact.atMs <= outbox().floorMs ? 0 : nowMs);
    this.#known.set(fact.id, sinceMs);
    if (nowMs - sinceMs > settledAfterMs) return true;
    const subscriptions = subscriptionsIn(stores.subscriptions, fact.request.namespace);
    const labels = request?.template?.labels ?? {};
    let hasRoom = true;
    for (const delivery of deliveriesOf(fact, { providers: stores.providers, subscriptions, labels, addressOf })) {
      if (outbox().knows(delivery)) continue;
      if (outbox().offer(delivery, nowMs)) {
        onOffered(delivery);
        continue;
      }
      hasRoom = false;
      onFull(delivery);
    }
    // The time to match it begins when there is room.
    if (!hasRoom) this.#known.delete(fact.id);
    return hasRoom;
  }

  #find(uid: string, nowMs: number) {
    const request = this.#request(uid);
    if (request) return { ...factsOf(request.view, request, nowMs), context: request };
    const [view] = this.#deps.stores.sessions.byIndex(byUid, uid);
    const gone = this.#gone.sessions.get(uid);
    const session = view ?? gone?.view;
    if (!session) return undefined;
    const context = this.#request(session.ownerUid ?? '');
    return { ...sessionFactsOf(session, context, view ? undefined : gone?.deletedAtMs, nowMs), context };
  }

  #request(uid: string): KnownRequest | undefined {
    for (const store of this.#deps.stores.requests) {
      const [view] = store.byIndex(byUid, uid);
      if (view) return { view, template: this.#template(view) };
    }
    const gone = this.#gone.requests.get(uid);
    return gone && { ...gone, template: this.#template(gone.view) };
  }

  #template({ kind, namespace, spec }: NotifiedRequest) {
    const access = accessOfRequest(kind);
    const key = keyOf({ namespace, name: spec.templateName });
    const present = this.#deps.stores.templates[accesses.indexOf(access)]?.get(key);
    return present ?? this.#gone.templates.get(`${access.template.resource.kind}/${key}`)?.view;
  }
}

/** Not of the status, which this process writes. */
const isChange = (event: StoreEvent<ProviderView | SubscriptionView>): boolean =>
  event.type === 'added' || (event.type === 'updated' && event.before.generation !== event.now.generation);
