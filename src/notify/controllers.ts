import { Controller } from '../engine/controller.ts';
import type { Reconciler } from '../engine/result.ts';
import type { Source } from '../engine/source.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import { hintSource } from '../engine/sources/hint.ts';
import type { Runnable } from '../engine/supervisor.ts';
import type { Clock } from '../kit/clock.ts';
import type { Client } from '../kube/client.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Delivery } from './facts/deliveries-of.ts';
import { FactsReconciler } from './facts/facts-reconciler.ts';
import { OutboxKeeper } from './outbox/outbox-keeper.ts';
import { ProviderReconciler } from './provider-reconciler.ts';
import type { Send } from './sink.ts';
import { byProvider, type NotifyStores } from './stores.ts';
import { subscriptionReconciler } from './subscription-reconciler.ts';

export interface NotifyDeps {
  readonly stores: NotifyStores;
  /** Writes only while this process leads. */
  readonly client: Client;
  /** Of the release: the outbox is stored there. */
  readonly namespace: string;
  /** Identifies the cluster. */
  readonly source: string;
  readonly send: Send;
  /** The mail address of a user, if it is known. */
  readonly addressOf: (username: string) => string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Uniform in [0, 1). Default Math.random. */
  readonly random?: () => number;
}

/** Each sink that hangs holds one, for at most 30 s. */
const deliveryWorkers = 1_000;

/**
 * In start order, behind the Lease. Call it in every replica: each remembers what is deleted.
 *
 *   requests, sessions ─ facts ─> Outbox ─ provider ─> Send
 *                                   │         └ status: what the sinks answered
 *                                   └ outbox: ConfigMaps
 */
export function notifyControllers(deps: NotifyDeps): readonly Runnable[] {
  const { stores, clock, log, metrics, random = Math.random } = deps;
  const { providers, subscriptions } = stores;
  const count = countOf(metrics);
  const deliveries = hintSource('delivery');
  const keeper: OutboxKeeper = new OutboxKeeper({ ...deps, random, seenMs: () => facts.seenMs });
  const outbox = () => keeper.outbox;
  const settled = (result: Result, list: readonly Delivery[]): void => {
    if (list.length === 0) return;
    count(result, list);
    if (result === 'undelivered') for (const delivery of list) warnOf(log, delivery);
    keeper.changed();
  };
  const facts = new FactsReconciler({
    ...deps,
    outbox,
    onOffered: ({ provider }) => {
      deliveries.hint(provider.key);
      keeper.changed();
    },
    onFull: (delivery) => settled('full', [delivery]),
    onMoot: (moot) => settled('moot', [moot]),
  });
  watchOutbox(metrics, clock, outbox);
  const controller = (name: string, reconciler: Reconciler, sources: readonly Source[], workers: number) =>
    new Controller({ name, clock, log, metrics: metrics.controller(name), reconciler, sources, workers, random });
  const pending: Source = {
    name: 'pending',
    start: async (emit) => outbox().providers.forEach(({ key }) => void emit(key, 'pending')),
  };
  const itsSubscriptions = fromSubscription('provider', providers, ({ key: provider }) =>
    subscriptions.byIndex(byProvider, provider).map(({ key }) => key),
  );
  return [
    keeper.writingLast(controller('notify-outbox', keeper, keeper.sources, 1)),
    // Before the delivery, so that what became moot meanwhile is not told.
    controller('notify-facts', facts, facts.sources, 16),
    controller(
      'notify-provider',
      new ProviderReconciler({ ...deps, providers, outbox, onSettled: settled }),
      [deliveries, pending, fromSubscription('provider', providers, ({ key }) => [key])],
      deliveryWorkers,
    ),
    controller(
      'notify-subscription',
      subscriptionReconciler(deps),
      [itsSubscriptions, fromSubscription('subscription', subscriptions, ({ key }) => [key])],
      4,
    ),
  ];
}

type Result = 'delivered' | 'failed' | 'undelivered' | 'moot' | 'full';

export function countOf(metrics: Metrics): (result: Result, deliveries: readonly Delivery[]) => void {
  const notifications = metrics.counter({
    name: 'drawbridge_notifications_total',
    help: 'What became of messages, by the type of the provider. delivered: a sink accepted it, alone or in a digest. failed: one attempt, which is repeated. undelivered: not within a day. moot: no longer worth telling before it was delivered. full: the outbox has no room for it, and it is offered again each 30 s.',
    labels: ['type', 'result'],
  });
  return (result, deliveries) => {
    for (const { provider } of deliveries) notifications.inc({ type: provider.type, result });
  };
}

export function watchOutbox(metrics: Metrics, clock: Clock, outbox: () => OutboxKeeper['outbox']): void {
  const labels = ['type'] as const;
  const help = 'In the leader, by the type of the provider.';
  const byType = () => Map.groupBy(outbox().pending, ({ provider }) => provider.type);
  const waiting = { name: 'drawbridge_notifications_pending', help: `Messages that wait. ${help}`, labels };
  metrics.collected(waiting, (set) => {
    for (const [type, pending] of byType()) set({ type }, pending.length);
  });
  const since = `Since the oldest message that waits is about something that happened. ${help}`;
  metrics.collected({ name: 'drawbridge_notifications_oldest_pending_seconds', help: since, labels }, (set) => {
    for (const [type, pending] of byType()) {
      const oldestMs = Math.min(...pending.map(({ fact }) => fact.atMs));
      set({ type }, Math.max(0, clock.now() - oldestMs) / 1000);
    }
  });
}

const warnOf = (log: Log, { provider, fact }: Delivery): void =>
  log.warn('a notification could not be delivered within a day, and is given up', {
    provider: provider.key,
    event: fact.event,
    namespace: fact.request.namespace,
    request: fact.request.name,
  });
