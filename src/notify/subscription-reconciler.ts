import { notificationSubscriptions } from '../api/notify/notification-subscription.ts';
import type { Condition } from '../api/object.ts';
import { done, type Reconciler } from '../engine/result.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import { maxSubscriptions, resolve, subscriptionsIn } from './facts/deliveries-of.ts';
import { type NotifyStores, providerKeyOf, readyOf, type SubscriptionView } from './stores.ts';
import { writeStatus } from './write-status.ts';

interface SubscriptionDeps {
  readonly stores: Pick<NotifyStores, 'providers' | 'subscriptions'>;
  readonly client: Pick<Client, 'mergePatch'>;
  readonly clock: Clock;
}

/** Says in the condition Ready of a subscription why it tells nothing. */
export const subscriptionReconciler = (deps: SubscriptionDeps): Reconciler => ({
  async reconcile(key, signal) {
    const view = deps.stores.subscriptions.get(key);
    const ready = view && readinessOf(view, deps.stores);
    if (view) await writeStatus(deps, notificationSubscriptions, view, { ready }, signal);
    return done;
  },
});

function readinessOf(
  subscription: SubscriptionView,
  { providers, subscriptions }: SubscriptionDeps['stores'],
): Pick<Condition, 'status' | 'reason' | 'message'> {
  const isUsed = subscriptionsIn(subscriptions, subscription.namespace).some(({ uid }) => uid === subscription.uid);
  const resolved = isUsed ? resolve(subscription, providers) : ({ problem: 'TooManySubscriptions' } as const);
  if (subscription.selectorError)
    return {
      status: 'False',
      reason: 'SelectorInvalid',
      message: `spec.templateSelector: ${subscription.selectorError}`,
    };
  const key = providerKeyOf(subscription);
  if ('provider' in resolved) {
    const { status, reason } = readyOf(resolved.provider) ?? {};
    const problem = `messages wait, because NotificationProvider ${key} is ${reason}; its condition Ready says why`;
    return status === 'False'
      ? { status, reason: 'ProviderNotReady', message: problem }
      : { status: 'True', reason: 'Ready', message: `messages go to NotificationProvider ${key}` };
  }
  const messages = {
    TooManySubscriptions: `namespace ${subscription.namespace} has more than ${maxSubscriptions}, of which the first by name are used; delete others`,
    ProviderNotFound: `NotificationProvider ${key} does not exist or is not valid; create or correct it`,
    ProviderNotAllowed: `spec.namespaces of NotificationProvider ${key} does not name the namespace ${subscription.namespace}; ask its owner to add it`,
    RequesterNeedsEmail: `NotificationProvider ${key} is not of type Email; set spec.to to Channel, or name a provider of that type`,
  };
  return { status: 'False', reason: resolved.problem, message: messages[resolved.problem] };
}
