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
  /**
   * `sync`: both ways. `drain`: the binding goes, consumer objects are being deleted; copies go first, then finalizers.
   */
  readonly mode: SyncMode;
  /** Called when `served()` has changed, when `problems()` may have, and outside of mode `sync` when `held()` may have; a few times a second at most. */
  readonly onChange?: () => void;
  /** Uniform in [0, 1), for backoff. Default Math.random. */
  readonly random?: () => number;
}

/** Keys that are worked on at a time. */
const WORKERS = 32;

/** Opens the watches of one bound kind; what they show is acted on once the controllers run. */
export function openSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { session, exported, schema, mode, random = Math.random } = options;
  const { clock } = deps;
  // To let go of objects any version will do.
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
  const ours = (): SyncedObject[] =>
    [...copies.store.list()].filter((copy) => annotationOf(copy, clusterNamespaceAnnotation) === clusterNamespace);

  const tell = coalesce(clock, options.onChange ?? (() => undefined));
  const binding = exported.name;
  const label = schema.name;
  const onChange = tell.soon;
  const loop = new SyncLoop(
    { what: 'sync', session, binding, resource: consumer, label, mode, workers: WORKERS, random, onChange },
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
    size: () => ({ objects: [...consumers.list()].length, copies: ours().length }),
    ages: { provider: () => copies.store.ageMs },
    unlisted() {
      const unlisted: string[] = [];
      if (consumers.state === 'unknown')
        unlisted.push('this cluster has not listed its objects yet; see that the konnector may list and watch them');
      if (!copies.store.synced)
        unlisted.push('the provider has not listed its objects yet; see that we may list and watch them there');
      return unlisted;
    },
  });
  // Not gathered: somebody may be waiting for the kind.
  if (options.onChange) consumers.onListed(options.onChange);
  // What was not kept may be kept now.
  const ignoreCrd = crds.subscribe((event) => {
    const changed = event.type === 'updated' && event.before.generation !== event.now.generation;
    if (event.key === crd && changed) loop.resync();
  });

  /** Those that do not prove of what they are copies, or are where the copy of that is not, stay. */
  const isToGo = (copy: SyncedObject): boolean => {
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
      const marked = [...consumers.list()].filter(hasSyncerFinalizer).length;
      if (mode !== 'drain') return marked;
      return marked + ours().filter(isToGo).length;
    },
    problems: () => [
      ...[...loop.slowLists(), ...(loop.held > 0 ? [heldBack(loop.held)] : [])].map(
        (problem) => `${label}: ${problem}`,
      ),
      ...loop.problems.list(label),
    ],
    served: () => consumers.state === 'listed',
    close() {
      ignoreCrd();
      loop.close();
      tell.stop();
      consumers.close();
      copies.close();
    },
  };
}

const heldBack = (copies: number): string =>
  `${copies} copies in the provider have no object here any more, and nobody saw those being deleted. They are not deleted, because so many at once look like lost data. Restore the objects, or set the annotation ${allowDeletesAnnotation} on the binding to a new value to have the copies deleted`;

/**
 * Keys from both sides' events. They are ready at once: the reconciler tells keys whose other side is not known yet to wait, and they come
 * again when it is, so that one namespace that cannot be listed holds up no other.
 */
function objectSources(caches: ObjectCaches, consumers: ConsumerObjects, copies: Copies, loop: SyncLoop) {
  const seenKeys = (side: 'consumer' | 'provider', key: string | undefined): string[] => {
    if (key === undefined) return [];
    loop.recordChange(side, key);
    return [key];
  };
  return [
    fromSubscription('consumer', consumers, (event) => seenKeys('consumer', caches.observeConsumer(event))),
    fromSubscription('provider', copies, (event) => seenKeys('provider', caches.observeCopy(event))),
    waking('listed', (listener) => consumers.onListed(listener), loop),
    waking('listed', (listener) => copies.onListed(listener), loop),
  ];
}

/** Wakes all keys at each call back. */
function waking(name: string, subscribe: (listener: () => void) => () => void, loop: SyncLoop): Source {
  return fromSubscription(name, { subscribe: (listener) => subscribe(() => listener(undefined)) }, () => {
    loop.wakeAll(name);
    return [];
  });
}

/** Keys of objects in a namespace that comes to stand for another one of the provider, or none. */
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
    waking('namespaces', (listener) => onSynced(store, listener), loop),
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

/** Undefined while its uid is not known: then the copy goes without. */
function ownerOf({ clusterNamespace, clusterNamespaceUid }: ProviderSession): OwnerReference | undefined {
  if (clusterNamespaceUid === undefined) return undefined;
  return { apiVersion: 'v1', kind: 'Namespace', name: clusterNamespace, uid: clusterNamespaceUid };
}

function withoutVersion({ schema, exported }: SyncerOptions): Syncer {
  const problem = `${schema.name}: no version of it is served that export ${exported.name} of ${bindGroup} asks for`;
  return {
    controllers: [],
    resync() {},
    allowDeletes() {},
    // Objects that an earlier version left behind can be neither seen nor changed.
    remaining: () => 0,
    problems: () => [problem],
    served: () => true,
    close() {},
  };
}
