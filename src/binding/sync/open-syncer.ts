import { allowDeletesAnnotation, clusterNamespaceAnnotation } from '../../api/binding/names.ts';
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
import { ConsumerObjects, consumerResource, syncVersion, wantedVersions } from './consumer-objects.ts';
import { type Copies, onSynced, openCopies } from './copies.ts';
import { isolationOf, type NamespacePairs } from './isolation.ts';
import { ObjectCaches } from './object-caches.ts';
import { type BindingIdentity, ownershipOf } from './ownership.ts';
import type { SyncContext } from './plan.ts';
import { annotationOf, copyProjection, hasSyncerFinalizer, type SyncedObject } from './synced-object.ts';

/** Inputs of `openSyncer`. `schema`: the BoundSchema of one resource of `exported`. */
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

/** Maximum number of keys that are reconciled at the same time. */
const WORKERS = 32;

/**
 * Opens the watches of one bound kind. Their events are handled once the caller starts the controllers. If no version can be synced, it
 * opens no watch and returns a syncer without controllers, whose `problems()` names the cause.
 */
export function openSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { session, exported, schema, mode, random = Math.random } = options;
  const { clock } = deps;
  // A drain can use any version to delete copies and remove finalizers, even one that the schema does not serve.
  const version = syncVersion(schema, exported) ?? (mode === 'sync' ? undefined : schema.versions[0]);
  if (!version) return withoutVersion(options);

  const resource = consumerResource(schema, version.name);
  const { clusterNamespace } = session;
  const { serviceNamespaces } = session.stores;
  const isolation = isolationOf(schema, exported, clusterNamespace, namespacePairs(session));
  const providerResource: Resource = { ...resource, namespaced: isolation.providerNamespaced };
  const usesNamespaces = schema.scope === 'Namespaced';
  const namespacesKnown = (): boolean => !usesNamespaces || serviceNamespaces.synced;

  const { crds } = deps.stores;
  const crd = `${resource.plural}.${resource.group}`;
  const consumerObjects = new ConsumerObjects({ cluster: deps.consumer, crds, crd, resource });
  const copies = openCopies(session, schema, isolation, providerResource);
  const caches = new ObjectCaches({ consumers: consumerObjects, copies, isolation, clusterNamespace, clock });
  const identity = (): BindingIdentity => ({
    clusterNamespace,
    bindingUid: deps.stores.bindings.get(exported.name)?.uid,
  });
  const context = (): SyncContext => ({
    ...identity(),
    provider: providerResource,
    owner: isolation.ownedByClusterNamespace ? ownerOf(session) : undefined,
    statusSubresource: version.subresources.status !== undefined,
  });
  const copiesOfConsumer = (): SyncedObject[] =>
    [...copies.store.list()].filter((copy) => annotationOf(copy, clusterNamespaceAnnotation) === clusterNamespace);

  const notify = coalesce(clock, options.onChange ?? (() => undefined));
  const binding = exported.name;
  const label = schema.name;
  const notifySoon = notify.trigger;
  const loop = new SyncLoop(
    { prefix: 'sync', session, binding, resource, label, mode, workers: WORKERS, random, onChange: notifySoon },
    deps,
  );
  const controller = loop.open({
    kind: new BoundObjects({
      mode,
      resources: { consumer: resource, provider: providerResource },
      clients: { consumer: deps.client, provider: session.client },
      consumers: consumerObjects,
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
      ...objectSources(caches, consumerObjects, copies, loop),
      ...(usesNamespaces ? namespaceSources(session, consumerObjects, loop) : []),
    ],
    *keys() {
      for (const { key } of consumerObjects.list()) yield key;
      for (const { key } of copies.store.list()) {
        const consumerKey = isolation.consumerKeyOf(key);
        if (consumerKey !== undefined) yield consumerKey;
      }
    },
    size: () => ({ objects: [...consumerObjects.list()].length, copies: copiesOfConsumer().length }),
    ages: { provider: () => copies.store.ageMs },
    unlisted: () => [
      ...(consumerObjects.state === 'unknown'
        ? [crds.get(crd)?.established === false ? unestablished(crd) : unlistedHere]
        : []),
      ...(copies.store.synced ? [] : [unlistedInProvider]),
    ],
  });
  // Not coalesced: a client may be waiting for the binding to become ready.
  if (options.onChange) consumerObjects.onListed(options.onChange);
  // The new schema may keep fields that the old one dropped.
  const unsubscribeCrd = crds.subscribe((event) => {
    const changed = event.type === 'updated' && event.before.generation !== event.now.generation;
    if (event.key === crd && changed) loop.resync();
  });

  /** Whether the copy was proven to be created through this binding. The drain deletes such copies, and `remaining` counts them. */
  const isProvenCopy = (copy: SyncedObject): boolean => {
    const key = isolation.consumerKeyOf(copy.key);
    return key !== undefined && ownershipOf(copy, undefined, identity(), key) === 'orphan';
  };
  return {
    controllers: [controller],
    resync: () => loop.resync(),
    allowDeletes: () => loop.allowDeletes(),
    remaining() {
      const areCopiesKnown = copies.store.synced && namespacesKnown();
      if (consumerObjects.state === 'unknown' || (mode === 'drain' && !areCopiesKnown)) return Number.POSITIVE_INFINITY;
      const finalized = [...consumerObjects.list()].filter(hasSyncerFinalizer).length;
      if (mode !== 'drain') return finalized;
      return finalized + copiesOfConsumer().filter(isProvenCopy).length;
    },
    problems() {
      const ofKind = loop.held > 0 ? [...loop.slowLists(), heldBack(loop.held, binding)] : loop.slowLists();
      return [...ofKind.map((problem) => `${label}: ${problem}`), ...loop.problems.list(label)];
    },
    served: () => consumerObjects.state === 'listed',
    close() {
      unsubscribeCrd();
      loop.close();
      notify.stop();
      consumerObjects.close();
      copies.close();
    },
  };
}

const unestablished = (crd: string): string =>
  `CustomResourceDefinition ${crd} is not established; read its conditions: kubectl describe crd ${crd}`;
const unlistedHere =
  'the konnector has not listed the objects in this cluster yet; it needs permission to list and watch them';
const unlistedInProvider =
  'the konnector has not listed the copies in the provider yet; the user of the kubeconfig needs permission to list and watch them there';

const heldBack = (copies: number, binding: string): string =>
  `${copies} copies in the provider have no object in this cluster, and no watch showed that the objects were deleted; the server keeps such copies if it would delete 20 or more within a minute; restore the objects, or delete the copies: kubectl annotate apiservicebinding ${binding} --overwrite ${allowDeletesAnnotation}="$(date)"`;

/** Enqueues a key for each event of either side, also before the lists are complete. The reconciler defers keys whose lists are missing. */
function objectSources(caches: ObjectCaches, consumers: ConsumerObjects, copies: Copies, loop: SyncLoop) {
  const keysOf = (side: 'consumer' | 'provider', key: string | undefined): string[] => {
    if (key === undefined) return [];
    loop.recordChange(side, key);
    return [key];
  };
  return [
    fromSubscription('consumer', consumers, (event) => keysOf('consumer', caches.observeConsumer(event))),
    fromSubscription('provider', copies, (event) => keysOf('provider', caches.observeCopy(event))),
    onListChange('consumer-listed', (listener) => consumers.onListed(listener), loop),
    onListChange('provider-listed', (listener) => copies.onListed(listener), loop),
  ];
}

/** Enqueues all keys when a list is complete or the CRD is no longer established. Also notifies the owner of a late list, or of a drain. */
function onListChange(name: string, subscribe: (listener: () => void) => () => void, loop: SyncLoop): Source {
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
  // Without `whenSynced`, so that the controller does not wait for the list.
  const events: Pick<typeof store, 'subscribe'> = { subscribe: (listener) => store.subscribe(listener) };
  return [
    fromSubscription('namespace', events, keysOf),
    onListChange('namespaces', (listener) => onSynced(store, listener), loop),
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

/** The cluster namespace as owner of copies; undefined while its UID is not known. Copies that are created meanwhile have no owner reference. */
function ownerOf({ clusterNamespace, clusterNamespaceUid }: ProviderSession): OwnerReference | undefined {
  if (clusterNamespaceUid === undefined) return undefined;
  return { apiVersion: 'v1', kind: 'Namespace', name: clusterNamespace, uid: clusterNamespaceUid };
}

function withoutVersion({ schema, exported }: SyncerOptions): Syncer {
  const served = schema.versions.filter((version) => version.served).map(({ name }) => name);
  const wanted = wantedVersions(schema, exported);
  const problem = `${schema.name}: the BoundSchema serves ${served.join(', ') || 'no version'}; APIServiceExport ${exported.name} allows ${wanted.join(', ') || 'any version'}; ask the provider to serve a version that the export allows`;
  return {
    controllers: [],
    resync() {},
    allowDeletes() {},
    // Without a version the objects can be neither read nor changed.
    remaining: () => 0,
    problems: () => [problem],
    // Otherwise `Ready` would wait for this kind forever.
    served: () => true,
    close() {},
  };
}
