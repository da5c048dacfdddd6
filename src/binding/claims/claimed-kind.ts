import { ownerLabel } from '../../api/binding/names.ts';
import { keyOf, type Resource } from '../../api/object.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { BindingDeps } from '../deps.ts';
import { requestServiceNamespace } from '../namespaces/service-namespaces.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { bySecret, type NamespaceView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import { SyncLoop } from '../sync-engine/sync-loop.ts';
import type { Syncer, SyncMode } from '../sync-engine/syncer.ts';
import { ClaimedObjectStrategy, type ClaimedObjectStrategyOptions } from './claimed-object-strategy.ts';
import type { ClaimedView } from './claimed-view.ts';
import { exemption } from './exemption.ts';
import type { OpenReferences } from './open-references.ts';
import { planClaim, planUnclaim } from './plan.ts';
import { ProviderObjects } from './provider-objects.ts';
import { SelectedObjects } from './selected-objects.ts';
import type { ClaimSelector } from './selector.ts';
import type { UsedNamespaces } from './used-namespaces.ts';

export interface ClaimedKindOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly resource: Resource;
  readonly selector: ClaimSelector;
  readonly references: OpenReferences;
  readonly usedNamespaces: UsedNamespaces;
  readonly mode: SyncMode;
  /** In mode `drain`: whether all bound objects are gone, so that copies may be deleted. */
  readonly mayDelete: boolean;
  readonly random: () => number;
  readonly onChange: (() => void) | undefined;
}

const workers = 8;
const notListed =
  'the konnector has not listed the objects in this cluster yet; it needs permission to list and watch them';

/**
 * Opens the watches and creates the controller, which the caller starts. In mode `drain`,
 * `remaining()` counts keys with a copy to delete.
 */
export function openClaimedKind(options: ClaimedKindOptions, deps: BindingDeps): Syncer {
  const { session, exported, resource, selector, references, usedNamespaces, mode, mayDelete, random, onChange } =
    options;
  const { stores } = deps;
  const { plural: label } = resource;
  const loop = new SyncLoop(
    { prefix: 'claims', session, binding: exported.name, resource, label, mode, workers, random, onChange },
    deps,
  );
  const consumer = new SelectedObjects(deps.consumer, resource, selector.watchSelector);
  const provider = new ProviderObjects({
    session,
    resource,
    clock: deps.clock,
    problems: loop.problems,
    consumerKeys: (namespace) => consumer.keysIn(namespace),
  });
  const strategy = new ClaimedObjectStrategy({
    plan: planFor(mode, mayDelete),
    resource,
    clients: { consumer: deps.client, provider: session.client },
    consumer,
    provider,
    namespaces: stores.namespaces,
    selectedBy: (object, namespace) => selectedBy(resource, selector, deps, { ...object, namespace }),
    mayCopyToConsumer: (namespace, name) =>
      usedNamespaces.has(namespace) ||
      references.index.hasBoundReferrer(namespace, name) ||
      isForProviders(stores.namespaces.get(namespace)),
    providerIdentity: () => session.clusterNamespaceUid,
    requestNamespace: (namespace, signal) => requestServiceNamespace(session, namespace, { signal }),
    log: loop.log,
  });
  const keysNamed = (name: string): string[] => [...consumer.keysNamed(name), ...provider.keysNamed(name)];
  const keys = (): string[] => [...consumer.keys(), ...provider.keys()];
  const controller = loop.open({
    strategy,
    sources: [
      ...provider.sources((key) => loop.recordChange('provider', key)),
      consumer.source((key) => loop.recordChange('consumer', key)),
      // Objects that gain or lose a referrer.
      fromSubscription('reference', references.index, ({ namespace, name }) =>
        namespace === undefined ? keysNamed(name) : [keyOf({ namespace, name })],
      ),
      // Provider objects of namespaces that get their first bound object.
      fromSubscription('used namespace', usedNamespaces, (namespace) => provider.keysIn(namespace)),
      fromSubscription('namespace', stores.namespaces, (event) => {
        if (event.type === 'deleted') return [];
        const { now } = event;
        if (event.type === 'added') return [...provider.keysIn(now.name), ...consumer.keysIn(now.name)];
        return isForProviders(now) && !isForProviders(event.before) ? provider.keysIn(now.name) : [];
      }),
      // Kubeconfig Secrets are exempt, so these stores must be synced before the first copy.
      fromSubscription('bindings', stores.bindings, () => []),
      fromSubscription('bundles', stores.bundles, () => []),
    ],
    keys,
    size: () => ({ objects: consumer.labelled, copies: provider.copies }),
    ages: { consumer: () => consumer.ageMs, provider: () => provider.ageMs },
    watches: { consumer, provider },
    unlisted: () => (consumer.synced ? [] : [notListed]),
  });
  consumer.onStateChange(() => loop.listed());
  return {
    controllers: [controller],
    remaining() {
      if (!consumer.synced || !provider.synced) return Number.POSITIVE_INFINITY;
      return strategy.countWithActions(new Set(keys()), planUnclaim);
    },
    problems: () => loop.listProblems(),
    refusedWatches: () => loop.refusedWatches(),
    served: () => true,
    resync: () => loop.resync(),
    allowDeletes: () => loop.allowDeletes(),
    close() {
      loop.close();
      consumer.close();
      provider.close();
      references.close();
    },
  };
}

function planFor(mode: SyncMode, mayDelete: boolean): ClaimedObjectStrategyOptions['plan'] {
  if (mode === 'sync') return planClaim;
  return mayDelete ? planUnclaim : undefined;
}

/** By its owner label, as on namespaces that were created for a provider. */
const isForProviders = (namespace: NamespaceView | undefined): boolean => namespace?.labels[ownerLabel] === 'provider';

/** The part of a claim that selects the object, in words. Exempt objects are never selected. */
function selectedBy(
  resource: Resource,
  selector: ClaimSelector,
  { stores, ownNamespaces }: BindingDeps,
  { namespace, name, labels, type }: Pick<ClaimedView, 'namespace' | 'name' | 'labels' | 'type'>,
): string | undefined {
  const isKubeconfig = (key: string): boolean =>
    stores.bindings.byIndex(bySecret, key).length > 0 || stores.bundles.byIndex(bySecret, key).length > 0;
  const key = keyOf({ namespace, name });
  if (exemption(resource, { key, name, labels, type }, { ownNamespaces, isKubeconfig }) !== undefined) return undefined;
  return selector.selectedBy({ namespace, name, labels });
}
