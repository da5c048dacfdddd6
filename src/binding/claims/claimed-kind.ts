import { keyOf, type Resource } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { BindingDeps } from '../deps.ts';
import { bindingMetrics, SyncWatch } from '../metrics.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { bySecret } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/views.ts';
import { ClaimReconciler } from './claim-reconciler.ts';
import { ClaimWriter } from './claim-writer.ts';
import type { ClaimedView } from './claimed-view.ts';
import { ConsumerObjects } from './consumer-objects.ts';
import { exemption } from './exemption.ts';
import type { OpenReferences } from './open-references.ts';
import type { ProblemList } from './problem-list.ts';
import { ProviderObjects } from './provider-objects.ts';
import type { ClaimSelector } from './selector.ts';

/** What keeps the claimed objects of one kind in step. */
export interface ClaimedKind {
  readonly controller: Controller;
  resync(): void;
  close(): void;
}

export interface ClaimedKindOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly requestNamespace: (namespace: string, signal: AbortSignal) => Promise<void>;
  readonly resource: Resource;
  readonly selector: ClaimSelector;
  readonly references: OpenReferences;
  readonly problems: ProblemList;
}

export function openClaimedKind(options: ClaimedKindOptions, deps: BindingDeps): ClaimedKind {
  const { session, exported, resource, selector, references, problems, requestNamespace } = options;
  const { clock, metrics, events, stores } = deps;
  const name = `claim-${session.id}-${exported.name}-${resource.plural}`;
  const log = deps.log.child({ claim: name });
  const measured = bindingMetrics(metrics);
  const up = new SyncWatch(clock, (seconds) => measured.syncedUp(resource.plural, seconds));
  const down = new SyncWatch(clock, (seconds) => measured.syncedDown(resource.plural, seconds));
  const consumer = new ConsumerObjects(deps.consumer, resource, selector.watchSelector);
  const provider = new ProviderObjects({
    session,
    resource,
    clock,
    problems,
    consumerKeys: (namespace) => consumer.keysIn(namespace),
    onEvent: (key) => down.seen(key),
  });
  const writer = new ClaimWriter({
    resource,
    clients: { consumer: deps.client, provider: session.client },
    clock,
    log,
    onWritten: (side, key) => (side === 'provider' ? up : down).written(key),
    onConflict: (side) => measured.conflict(resource.plural, side),
  });
  const reconciler = new ClaimReconciler({
    resource,
    consumer,
    provider,
    namespaces: stores.namespaces,
    writer,
    isClaimed: isClaimed(resource, selector, deps),
    providerIdentity: () => session.clusterNamespaceUid,
    requestNamespace,
    problems,
    clock,
    events,
    onSettled: (key) => {
      for (const watch of [up, down]) watch.dropped(key);
    },
  });
  const hints = hintSource('resync');
  const stopReferences = references.index.subscribe((target) => {
    const named = (): string[] => [...consumer.keysNamed(target.name), ...provider.keysNamed(target.name)];
    const keys = target.namespace === undefined ? named() : [keyOf({ ...target, namespace: target.namespace })];
    for (const key of keys) hints.hint(key, 'reference');
  });
  const controller = new Controller({
    name,
    sources: [
      ...consumer.sources((key) => up.seen(key)),
      provider,
      hints,
      fromSubscription('namespace', stores.namespaces, (event) =>
        event.type === 'added' ? [...provider.keysIn(event.now.name), ...consumer.keysIn(event.now.name)] : [],
      ),
      // The Secrets that they name are exempt, so they must be known before the first is copied.
      fromSubscription('bindings', stores.bindings, () => []),
      fromSubscription('bundles', stores.bundles, () => []),
    ],
    reconciler,
    clock,
    log: deps.log,
    metrics: metrics.controller(name),
    workers: 8,
    backoff: { baseMs: 100, capMs: 30_000 },
  });
  const watched = { session: session.id, resource: resource.plural };
  const stopMetrics = [
    measured.watching({ ...watched, side: 'consumer' }, () => consumer.ageMs),
    measured.watching({ ...watched, side: 'provider' }, () => provider.ageMs),
  ];
  return {
    controller,
    resync() {
      for (const key of new Set([...consumer.keys(), ...provider.keys()])) hints.hint(key);
    },
    close() {
      for (const stop of [stopReferences, ...stopMetrics]) stop();
      consumer.close();
      references.close();
    },
  };
}

function isClaimed(resource: Resource, selector: ClaimSelector, { stores }: BindingDeps) {
  const isKubeconfig = (key: string): boolean =>
    stores.bindings.byIndex(bySecret, key).length > 0 || stores.bundles.byIndex(bySecret, key).length > 0;
  return (object: ClaimedView, namespace: string): boolean => {
    const { name, labels, type } = object;
    const key = keyOf({ namespace, name });
    if (exemption(resource, { key, name, labels, type }, isKubeconfig) !== undefined) return false;
    return selector.why({ namespace, name, labels }) !== undefined;
  };
}
