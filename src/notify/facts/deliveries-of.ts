import type { ProviderType } from '../../api/notify/notification-provider.ts';
import type { Store } from '../../kube/store.ts';
import { type Fact, hashOf } from '../fact.ts';
import { byNamespace, type NotifyStores, type ProviderView, providerKeyOf, type SubscriptionView } from '../stores.ts';
import type { FoundFact } from './facts-of.ts';

/** A fact for one address. It outlives the request, the subscription, and this process. */
export interface Delivery {
  /** The same for the same provider, address, and fact, however many subscriptions overlap. */
  readonly id: string;
  readonly provider: { readonly key: string; readonly uid: string; readonly type: ProviderType };
  /** A mail address in place of the provider's channel. */
  readonly to?: string;
  readonly fact: Fact;
  /** As `FoundFact.unsettledUntilMs`, or `fact.atMs`. */
  readonly settledMs: number;
}

/** Of a namespace: those that are used, in the order of their names. Each costs time for each fact. */
export function subscriptionsIn(store: NotifyStores['subscriptions'], namespace: string): readonly SubscriptionView[] {
  const all = [...store.byIndex(byNamespace, namespace)];
  return all.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, maxSubscriptions);
}

export const maxSubscriptions = 100;

/** `problem`: the reason of its condition Ready. */
export function resolve(
  subscription: Pick<SubscriptionView, 'namespace' | 'spec'>,
  providers: Pick<Store<ProviderView>, 'get'>,
):
  | { readonly provider: ProviderView }
  | { readonly problem: 'ProviderNotFound' | 'ProviderNotAllowed' | 'RequesterNeedsEmail' } {
  const { namespace, spec } = subscription;
  const provider = providers.get(providerKeyOf(subscription));
  if (!provider) return { problem: 'ProviderNotFound' };
  const { namespaces = [], type } = provider.spec;
  const isAllowed = provider.namespace === namespace || namespaces.includes(namespace) || namespaces.includes('*');
  if (!isAllowed) return { problem: 'ProviderNotAllowed' };
  return spec.to === 'Requester' && type !== 'Email' ? { problem: 'RequesterNeedsEmail' } : { provider };
}

interface Matching {
  readonly providers: Pick<NotifyStores['providers'], 'get'>;
  /** As `subscriptionsIn`. */
  readonly subscriptions: readonly SubscriptionView[];
  readonly labels: Readonly<Record<string, string>>;
  readonly addressOf: (username: string) => string | undefined;
}

/** Only facts since both the subscription and its provider exist. */
export function deliveriesOf(found: FoundFact, matching: Matching): readonly Delivery[] {
  const { unsettledUntilMs, ...fact } = found;
  const settledMs = Math.max(fact.atMs, unsettledUntilMs ?? 0);
  const deliveries = new Map<string, Delivery>();
  for (const subscription of matching.subscriptions) {
    const { events, to: whom } = subscription.spec;
    if (!events.includes(fact.event) || fact.atMs < subscription.createdAtMs) continue;
    if (!subscription.matches(matching.labels)) continue;
    const resolved = resolve(subscription, matching.providers);
    if ('problem' in resolved || fact.atMs < resolved.provider.createdAtMs) continue;
    const { key, uid, spec } = resolved.provider;
    const to = whom === 'Requester' ? matching.addressOf(fact.requester) : undefined;
    if (whom === 'Requester' && to === undefined) continue;
    const id = hashOf(`${uid}/${to ?? ''}/${fact.id}`, 16);
    const provider = { key, uid, type: spec.type };
    deliveries.set(id, { id, provider, ...(to === undefined ? {} : { to }), fact, settledMs });
  }
  return [...deliveries.values()];
}
