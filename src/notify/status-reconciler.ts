import { type ConditionUpdate, mergeConditions } from '../api/conditions.ts';
import { notificationProviders } from '../api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../api/notify/notification-subscription.ts';
import type { Condition, Resource } from '../api/object.ts';
import { after, done, type Reconciler, type Result, retryConflict } from '../engine/result.ts';
import type { Clock } from '../kit/clock.ts';
import { compileSelector } from '../kit/label-selector.ts';
import type { Client } from '../kube/client.ts';
import { isConflict, isNotFound } from '../kube/errors.ts';
import { maxSubscriptions, resolve, subscriptionsIn } from './facts/deliveries-of.ts';
import type { ProviderHealths } from './provider-healths.ts';
import { type NotifyStores, type ProviderView, providerKeyOf, type SubscriptionView } from './stores.ts';

interface StatusDeps {
  readonly stores: Pick<NotifyStores, 'providers' | 'subscriptions'>;
  readonly client: Pick<Client, 'mergePatch'>;
  readonly healths: ProviderHealths;
  readonly clock: Clock;
}

/** So that a sink that fails now and then does not cause a write for each message. */
const conditionEveryMs = 10_000;

export const providerStatusKey = (key: string): string => `provider:${key}`;
export const subscriptionStatusKey = (key: string): string => `subscription:${key}`;

/** Writes the conditions of providers and subscriptions, and the results of test messages. */
export class StatusReconciler implements Reconciler {
  readonly #deps: StatusDeps;
  /** By key, monotonic. */
  readonly #written = new Map<string, number>();

  constructor(deps: StatusDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { stores } = this.#deps;
    const [kind, name = ''] = key.split(':');
    if (kind === 'subscription') {
      const subscription = stores.subscriptions.get(name);
      return subscription ? this.#subscription(subscription, signal) : done;
    }
    const provider = stores.providers.get(name);
    if (provider) return this.#provider(provider, signal);
    this.#written.delete(name);
    return done;
  }

  async #provider(provider: ProviderView, signal: AbortSignal): Promise<Result> {
    const { healths, clock } = this.#deps;
    const update = healths.conditionOf(provider);
    const lastTest = healths.testOf(provider);
    if (!update && !lastTest) return done;
    const waitMs = (this.#written.get(provider.key) ?? Number.NEGATIVE_INFINITY) + conditionEveryMs - clock.monotonic();
    if (!lastTest && waitMs > 0) return after(waitMs);
    if (update?.status !== 'Unknown') this.#written.set(provider.key, clock.monotonic());
    return this.#write(notificationProviders, provider, update, lastTest ? { lastTest } : {}, signal);
  }

  #subscription(subscription: SubscriptionView, signal: AbortSignal): Promise<Result> {
    const update = { type: 'Ready', ...readinessOf(subscription, this.#deps.stores) };
    return this.#write(notificationSubscriptions, subscription, update, {}, signal);
  }

  async #write(
    resource: Resource,
    view: ProviderView | SubscriptionView,
    update: ConditionUpdate<Condition> | undefined,
    more: object,
    signal: AbortSignal,
  ): Promise<Result> {
    const { client, clock } = this.#deps;
    const { namespace, name, resourceVersion, generation } = view;
    const conditions = mergeConditions(view.conditions, update ? [update] : [], clock.now(), { generation });
    if (conditions === view.conditions && Object.keys(more).length === 0) return done;
    const patch = { metadata: { resourceVersion }, status: { conditions, ...more } };
    try {
      await client.mergePatch(resource, { namespace, name }, patch, { signal, subresource: 'status' });
    } catch (error) {
      if (isNotFound(error)) return done;
      // The watch has not shown the last write, or another one.
      if (isConflict(error)) return retryConflict(error);
      throw error;
    }
    return done;
  }
}

function readinessOf(
  subscription: SubscriptionView,
  { providers, subscriptions }: StatusDeps['stores'],
): Pick<Condition, 'status' | 'reason' | 'message'> {
  const isUsed = subscriptionsIn(subscriptions, subscription.namespace).some(({ uid }) => uid === subscription.uid);
  const resolved = isUsed ? resolve(subscription, providers) : ({ problem: 'TooManySubscriptions' } as const);
  const { templateSelector = {} } = subscription.spec;
  const selector = compileSelector(templateSelector);
  if ('error' in selector)
    return { status: 'False', reason: 'SelectorInvalid', message: `spec.templateSelector: ${selector.error}` };
  if ('provider' in resolved)
    return { status: 'True', reason: 'Ready', message: `NotificationProvider ${resolved.provider.key} is told` };
  const key = providerKeyOf(subscription);
  const messages = {
    TooManySubscriptions: `namespace ${subscription.namespace} has more than ${maxSubscriptions}, of which the first by name are used; delete others`,
    ProviderNotFound: `NotificationProvider ${key} does not exist or is not valid; create or correct it`,
    ProviderNotAllowed: `spec.namespaces of NotificationProvider ${key} does not name the namespace ${subscription.namespace}; ask its owner to add it`,
    RequesterNeedsEmail: `NotificationProvider ${key} is not of type Email; set spec.to to Channel, or name a provider of that type`,
  };
  return { status: 'False', reason: resolved.problem, message: messages[resolved.problem] };
}
