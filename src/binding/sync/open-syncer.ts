import { allowDeletesAnnotation, bindGroup, clusterNamespaceAnnotation } from '../../api/binding/names.ts';
import type { OwnerReference, Resource } from '../../api/object.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import { requestServiceNamespace } from '../namespaces/service-namespaces.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import {
  type BoundSchemaView,
  byServiceNamespace,
  type ExportView,
  type ServiceNamespaceView,
} from '../stores/provider-stores.ts';
import type { Syncer, SyncMode } from '../sync-engine/kind.ts';
import { coalesce, SyncLoop } from '../sync-engine/sync-loop.ts';
import { BoundObjects } from './bound-objects.ts';
import { ConsumerObjects, consumerResource, syncVersion } from './consumer-objects.ts';
import { type Copies, onSynced, openCopies } from './copies.ts';
import { isolationOf, type NamespacePairs } from './isolation.ts';
import { ObjectCaches } from './object-caches.ts';
import { type BindingIdentity, ownershipOf } from './ownership.ts';
import type { SyncContext } from './plan.ts';
import { annotationOf, copyProjection, hasSyncerFinalizer, type SyncedObject } from './synced-object.ts';

export interface SyncerOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly schema: BoundSchemaView;
  /** `sync`: both directions. `drain`: the binding is being deleted; the syncer deletes copies, then removes finalizers. */
  readonly mode: SyncMode;
  /**
   * Called when `served()` has changed, and when `problems()` or, in mode `drain`, `remaining()` may have changed. Apart from `served()`,
   * at most five times a second.
   */
  readonly onChange?: () => void;
  /** Uniform in [0, 1), for backoff. Default Math.random. */
  readonly random?: () => number;
}

/** Keys that are reconciled at the same time. */
const WORKERS = 32;

/**
 * Opens the watches of one bound kind. Their events are handled once the caller starts the controllers. Without a version to sync, it opens
 * nothing: the syncer only has a problem.
 */
export function openSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { session, exported, schema, mode, random = Math.random } = options;
  const { clock } = deps;
  // Any version, even one that the schema does not mark as served, may do to delete copies and remove finalizers.
  const version = syncVersion(schema, exported) ?? (mode === 'sync' ? undefined : schema.versions[0]);
  if (!version) return withoutVersion(options);

  const consumer = consumerResource(schema, version.name);
  const { clusterNamespace } = session;
  const { serviceNamespaces } = session.stores;
  const isolation = isolationOf(schema, exported, clusterNamespace, namespacePairs(session));
  const provider: Resource = { ...consumer, namespaced: isolation.providerNamespaced };
  const usesNamespaces = schema.scope === 'Namespaced';
  const namespacesKnown = (): boolean => !usesNamespaces || serviceNamespaces.synced;

  const { crds } = deps.stores;
  const crd = `${consumer.plural}.${consumer.group}`;
  const consumers = new ConsumerObjects({ cluster: deps.consumer, crds, crd, resource: consumer });
  const copies = openCopies(session, schema, isolation, provider);
  const caches = new ObjectCaches({ consumers, copies, isolation, clusterNamespace, clock });
  const identity = (): BindingIdentity => ({
    clusterNamespace,
    bindingUid: deps.stores.bindings.get(exported.name)?.uid,
  });
  const context = (): SyncContext => ({
    ...identity(),
    provider,
    owner: isolation.ownedByClusterNamespace ? ownerOf(session) : undefined,
    statusSubresource: version.subresources.status !== undefined,
  });
  const copiesOfConsumer = (): SyncedObject[] =>
    [...copies.store.list()].filter((copy) => annotationOf(copy, clusterNamespaceAnnotation) === clusterNamespace);

  const notify = coalesce(clock, options.onChange ?? (() => undefined));
  const binding = exported.name;
  const label = schema.name;
  const onChange = notify.trigger;
  const loop = new SyncLoop(
    { prefix: 'sync', session, binding, resource: consumer, label, mode, workers: WORKERS, random, onChange },
    deps,
  );
  const controller = loop.open({
    kind: new BoundObjects({
      mode,
      resources: { consumer, provider },
      clients: { consumer: deps.client, provider: session.client },
      consumers,
      copies,
      isolation,
      namespacesKnown,
      context,
      caches,
      copyProjection: copyProjection(session),
      requestNamespace: (namespace, signal) => requestServiceNamespace(session, namespace, { signal }),
      observer: loop.observer,
      clock,
    }),
    sources: [
      ...objectSources(caches, consumers, copies, loop),
      ...(usesNamespaces ? namespaceSources(session, consumers, loop) : []),
    ],
    *keys() {
      for (const { key } of consumers.list()) yield key;
      for (const { key } of copies.store.list()) {
        const consumerKey = isolation.consumerKeyOf(key);
        if (consumerKey !== undefined) yield consumerKey;
      }
    },
    size: () => ({ objects: [...consumers.list()].length, copies: copiesOfConsumer().length }),
    ages: { provider: () => copies.store.ageMs },
    unlisted() {
      const unlisted: string[] = [];
      if (consumers.state === 'unknown')
        unlisted.push(
          'this cluster has not listed its objects yet; check that the konnector has permission to list and watch them',
        );
      if (!copies.store.synced)
        unlisted.push(
          'the provider has not listed its objects yet; check that its kubeconfig has permission to list and watch them',
        );
      return unlisted;
    },
  });
  // Not coalesced: a client may be waiting for the binding to become ready.
  if (options.onChange) consumers.onListed(options.onChange);
  // The new schema may keep fields that the old one dropped.
  const unsubscribeCrd = crds.subscribe((event) => {
    const changed = event.type === 'updated' && event.before.generation !== event.now.generation;
    if (event.key === crd && changed) loop.resync();
  });

  /** Whether the drain deletes the copy. It keeps copies without proof that they were created through this binding. */
  const isOrphan = (copy: SyncedObject): boolean => {
    const key = isolation.consumerKeyOf(copy.key);
    return key !== undefined && ownershipOf(copy, undefined, identity(), key) === 'orphan';
  };
  return {
    controllers: [controller],
    resync: () => loop.resync(),
    allowDeletes: () => loop.allowDeletes(),
    remaining() {
      const isKnown = mode !== 'drain' || (copies.store.synced && namespacesKnown());
      if (consumers.state === 'unknown' || !isKnown) return Number.POSITIVE_INFINITY;
      const finalized = [...consumers.list()].filter(hasSyncerFinalizer).length;
      if (mode !== 'drain') return finalized;
      return finalized + copiesOfConsumer().filter(isOrphan).length;
    },
    problems: () => [
      ...[...loop.slowLists(), ...(loop.held > 0 ? [heldBack(loop.held)] : [])].map(
        (problem) => `${label}: ${problem}`,
      ),
      ...loop.problems.list(label),
    ],
    served: () => consumers.state === 'listed',
    close() {
      unsubscribeCrd();
      loop.close();
      notify.stop();
      consumers.close();
      copies.close();
    },
  };
}

const heldBack = (copies: number): string =>
  `${copies} copies in the provider have no object in this cluster, and the watch did not show that the objects were deleted. The copies are kept, because so many at once look like lost data. Restore the objects. To delete the copies, set the annotation ${allowDeletesAnnotation} on the binding to a new value`;

/**
 * Enqueues a key for each event of either side. The sources wait for no list: a namespace that cannot be listed must delay no other.
 * The reconciler defers keys whose lists are missing.
 */
function objectSources(caches: ObjectCaches, consumers: ConsumerObjects, copies: Copies, loop: SyncLoop) {
  const recordChange = (side: 'consumer' | 'provider', key: string | undefined): string[] => {
    if (key === undefined) return [];
    loop.recordChange(side, key);
    return [key];
  };
  return [
    fromSubscription('consumer', consumers, (event) => recordChange('consumer', caches.observeConsumer(event))),
    fromSubscription('provider', copies, (event) => recordChange('provider', caches.observeCopy(event))),
    onceListed('listed', (listener) => consumers.onListed(listener), loop),
    onceListed('listed', (listener) => copies.onListed(listener), loop),
  ];
}

/** Enqueues all keys when a list is complete, and withdraws the problem of a late one. */
function onceListed(name: string, subscribe: (listener: () => void) => () => void, loop: SyncLoop): Source {
  return fromSubscription(name, { subscribe: (listener) => subscribe(() => listener(undefined)) }, () => {
    loop.wakeAll(name);
    loop.listed();
    return [];
  });
}

/**
 * Enqueues the objects of a consumer namespace whose APIServiceNamespace was added or deleted, names another service namespace, or is being
 * deleted. Enqueues all keys once the APIServiceNamespaces are listed.
 */
function namespaceSources(
  { clusterNamespace, stores }: ProviderSession,
  consumers: ConsumerObjects,
  loop: SyncLoop,
): Source[] {
  const { serviceNamespaces: store } = stores;
  const keysOf = (event: StoreEvent<ServiceNamespaceView>): string[] => {
    const view = 'now' in event ? event.now : event.before;
    const unchanged =
      event.type === 'updated' &&
      event.before.serviceNamespace === event.now.serviceNamespace &&
      event.before.deleting === event.now.deleting;
    if (view.namespace !== clusterNamespace || unchanged) return [];
    return consumers.inNamespace(view.name).map(({ key }) => key);
  };
  return [
    fromSubscription('namespace', { subscribe: (listener) => store.subscribe(listener) }, keysOf),
    onceListed('namespaces', (listener) => onSynced(store, listener), loop),
  ];
}

function namespacePairs({ clusterNamespace, stores }: ProviderSession): NamespacePairs {
  const { serviceNamespaces } = stores;
  return {
    ofConsumer: (namespace) => serviceNamespaces.get(`${clusterNamespace}/${namespace}`),
    ofProvider: (serviceNamespace) =>
      serviceNamespaces
        .byIndex(byServiceNamespace, serviceNamespace)
        .find(({ namespace }) => namespace === clusterNamespace)?.name,
  };
}

/** Undefined while the uid is not known. Copies that are created meanwhile have no owner reference. */
function ownerOf({ clusterNamespace, clusterNamespaceUid }: ProviderSession): OwnerReference | undefined {
  if (clusterNamespaceUid === undefined) return undefined;
  return { apiVersion: 'v1', kind: 'Namespace', name: clusterNamespace, uid: clusterNamespaceUid };
}

function withoutVersion({ schema, exported }: SyncerOptions): Syncer {
  const problem = `${schema.name}: the provider serves no version for export ${exported.name} of ${bindGroup}; ask the provider to serve one`;
  return {
    controllers: [],
    resync() {},
    allowDeletes() {},
    // Without a version the objects can be neither read nor changed.
    remaining: () => 0,
    problems: () => [problem],
    served: () => true,
    close() {},
  };
}
