import { clusterNamespaceAnnotation } from '../../api/binding/names.ts';
import type { OwnerReference, Resource } from '../../api/object.ts';
import type { Controller } from '../../engine/controller.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Store, StoreEvent } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import { requestServiceNamespace } from '../namespaces/service-namespaces.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import {
  type BoundSchemaView,
  byServiceNamespace,
  type ExportView,
  type ServiceNamespaceView,
} from '../stores/provider-stores.ts';
import { SyncLoop } from '../sync-engine/sync-loop.ts';
import type { RefusedWatch, Side, Syncer, SyncMode } from '../sync-engine/syncer.ts';
import { BoundObjectStrategy } from './bound-object-strategy.ts';
import { ConsumerObjects, consumerResource, syncVersion, wantedVersions } from './consumer-objects.ts';
import { type Copies, openCopies } from './copies.ts';
import { type Isolation, isolationOf, type NamespacePairs } from './isolation.ts';
import { ObjectCaches } from './object-caches.ts';
import { type BindingIdentity, ownershipOf } from './ownership.ts';
import type { SyncContext } from './plan.ts';
import { annotationOf, copyProjection, hasSyncerFinalizer, type SyncedObject } from './synced-object.ts';

export interface SyncerOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly schema: BoundSchemaView;
  readonly mode: SyncMode;
  /** At once for `served()`; otherwise at most five times a second. */
  readonly onChange?: () => void;
  readonly random?: () => number;
}

const WORKERS = 32;

/**
 * Opens the watches of one bound kind; events are handled once the caller starts the controllers. A
 * syncer without a version to sync only has a problem.
 */
export function openSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { exported, schema, mode } = options;
  // A drain can use any version, even one that the schema does not serve.
  const version = syncVersion(schema, exported) ?? (mode === 'drain' ? schema.versions[0] : undefined);
  return version ? new BoundSyncer(options, deps, version) : withoutVersion(options);
}

/** In the provider it may be namespaced while it is cluster-scoped in the consumer. */
type Resources = Readonly<Record<Side, Resource>>;

class BoundSyncer implements Syncer {
  readonly controllers: readonly Controller[];
  readonly #options: SyncerOptions;
  readonly #deps: BindingDeps;
  readonly #crd: string;
  readonly #isolation: Isolation;
  readonly #consumerObjects: ConsumerObjects;
  readonly #copies: Copies;
  readonly #loop: SyncLoop;
  readonly #unsubscribeCrd: () => void;

  constructor(options: SyncerOptions, deps: BindingDeps, version: BoundSchemaView['versions'][number]) {
    const { session, exported, schema, mode, onChange, random = Math.random } = options;
    const resource = consumerResource(schema, version.name);
    this.#options = options;
    this.#deps = deps;
    this.#crd = `${resource.plural}.${resource.group}`;
    this.#isolation = isolationOf(schema, exported, session.clusterNamespace, namespacePairs(session));
    const resources = {
      consumer: resource,
      provider: { ...resource, namespaced: this.#isolation.providerNamespaced },
    };
    const { crds } = deps.stores;
    this.#consumerObjects = new ConsumerObjects({ cluster: deps.consumer, crds, crd: this.#crd, resource });
    this.#copies = openCopies(session, schema, this.#isolation, resources.provider);
    this.#loop = new SyncLoop(
      {
        prefix: 'sync',
        session,
        binding: exported.name,
        resource,
        label: schema.name,
        mode,
        workers: WORKERS,
        random,
        onChange,
      },
      deps,
    );
    this.controllers = [this.#openController(resources, version.subresources.status !== undefined)];
    // Not coalesced: a client may be waiting for the binding to become ready.
    if (onChange) this.#consumerObjects.onStateChange(onChange);
    this.#unsubscribeCrd = this.#resyncOnNewSchema();
  }

  resync(): void {
    this.#loop.resync();
  }

  allowDeletes(): void {
    this.#loop.allowDeletes();
  }

  remaining(): number {
    const isDrain = this.#options.mode === 'drain';
    const areCopiesKnown = this.#copies.synced && this.#areNamespacesKnown();
    if (this.#consumerObjects.state === 'unknown' || (isDrain && !areCopiesKnown)) return Number.POSITIVE_INFINITY;
    const keys = new Set([...this.#consumerObjects.list()].filter(hasSyncerFinalizer).map(({ key }) => key));
    if (isDrain) for (const key of this.#keysOfProvenCopies()) keys.add(key);
    return keys.size;
  }

  problems(): readonly string[] {
    return this.#loop.listProblems();
  }

  refusedWatches(): readonly RefusedWatch[] {
    return this.#loop.refusedWatches();
  }

  served(): boolean {
    return this.#consumerObjects.state === 'listed';
  }

  close(): void {
    this.#unsubscribeCrd();
    this.#loop.close();
    this.#consumerObjects.close();
    this.#copies.close();
  }

  #openController(resources: Resources, statusSubresource: boolean): Controller {
    const { session, schema, mode } = this.#options;
    const { client, clock } = this.#deps;
    const { clusterNamespace } = session;
    const isolation = this.#isolation;
    const consumers = this.#consumerObjects;
    const copies = this.#copies;
    const loop = this.#loop;
    const caches = new ObjectCaches({ consumers, copies, isolation, clusterNamespace, clock });
    const strategy = new BoundObjectStrategy({
      mode,
      resources,
      clients: { consumer: client, provider: session.client },
      consumers,
      copies,
      isolation,
      namespacesKnown: () => this.#areNamespacesKnown(),
      context: () => this.#context(resources.provider, statusSubresource),
      caches,
      copyProjection: copyProjection(clusterNamespace),
      requestNamespace: (namespace, signal) => requestServiceNamespace(session, namespace, { signal }),
      observer: loop.observer,
      clock,
    });
    const sources = objectSources(caches, consumers, copies, loop);
    if (schema.scope === 'Namespaced') sources.push(...namespaceSources(session, consumers, loop));
    return loop.open({
      strategy,
      sources,
      keys: () => this.#keys(),
      size: () => ({ objects: [...consumers.list()].length, copies: this.#copiesOfConsumer().length }),
      ages: { provider: () => copies.ageMs },
      watches: { consumer: consumers, provider: copies },
      unlisted: () => this.#unlisted(),
    });
  }

  /** A new schema may keep fields that the old one dropped. */
  #resyncOnNewSchema(): () => void {
    return this.#deps.stores.crds.subscribe((event) => {
      const isNewGeneration = event.type === 'updated' && event.before.generation !== event.now.generation;
      if (event.key === this.#crd && isNewGeneration) this.#loop.resync();
    });
  }

  *#keys(): Iterable<string> {
    for (const { key } of this.#consumerObjects.list()) yield key;
    for (const { key } of this.#copies.list()) {
      const consumerKey = this.#isolation.consumerKeyOf(key);
      if (consumerKey !== undefined) yield consumerKey;
    }
  }

  #unlisted(): string[] {
    const { state, failing } = this.#consumerObjects;
    return [
      ...(state === 'unknown' ? [unlistedHere(this.#crd, failing?.reason)] : []),
      ...(this.#copies.synced ? [] : [unlistedInProvider]),
    ];
  }

  #areNamespacesKnown(): boolean {
    const { schema, session } = this.#options;
    return schema.scope !== 'Namespaced' || session.stores.serviceNamespaces.synced;
  }

  #identity(): BindingIdentity {
    const { session, exported } = this.#options;
    const bindingUid = this.#deps.stores.bindings.get(exported.name)?.uid;
    return { clusterNamespace: session.clusterNamespace, bindingUid };
  }

  #context(copyResource: Resource, statusSubresource: boolean): SyncContext {
    const owner = this.#isolation.ownedByClusterNamespace ? ownerOf(this.#options.session) : undefined;
    return { ...this.#identity(), copyResource, owner, statusSubresource };
  }

  #copiesOfConsumer(): SyncedObject[] {
    const { clusterNamespace } = this.#options.session;
    return [...this.#copies.list()].filter(
      (copy) => annotationOf(copy, clusterNamespaceAnnotation) === clusterNamespace,
    );
  }

  /** Those that the drain deletes. */
  *#keysOfProvenCopies(): Iterable<string> {
    for (const copy of this.#copiesOfConsumer()) {
      const key = this.#isolation.consumerKeyOf(copy.key);
      if (key !== undefined && ownershipOf(copy, undefined, this.#identity(), key) === 'orphan') yield key;
    }
  }
}

const unlistedHere = (crd: string, cause: string | undefined): string =>
  `the konnector has not listed the objects in this cluster yet${cause === undefined ? '' : ` (${cause})`}; it needs permission to list and watch them, and an established CustomResourceDefinition: kubectl describe crd ${crd}`;
const unlistedInProvider =
  'the konnector has not listed the copies in the provider yet; if the provider is reachable, ask it to let the user of the kubeconfig list and watch them';

/** Also before the lists are complete; the reconciler defers such keys. */
function objectSources(caches: ObjectCaches, consumers: ConsumerObjects, copies: Copies, loop: SyncLoop): Source[] {
  const keysOf = (side: 'consumer' | 'provider', key: string | undefined): string[] => {
    if (key === undefined) return [];
    loop.recordChange(side, key);
    return [key];
  };
  return [
    fromSubscription('consumer', consumers, (event) => keysOf('consumer', caches.observeConsumer(event))),
    fromSubscription('provider', copies, (event) => keysOf('provider', caches.observeCopy(event))),
    onListChange('consumer-listed', (listener) => consumers.onStateChange(listener), loop),
    onListChange('provider-listed', (listener) => copies.onListed(listener), loop),
  ];
}

/** A list is complete, or its watch has ended. */
function onListChange(name: string, subscribe: (listener: () => void) => () => void, loop: SyncLoop): Source {
  return fromSubscription(name, { subscribe: (listener) => subscribe(() => listener(undefined)) }, () => {
    loop.wakeAll(name);
    loop.listed();
    return [];
  });
}

/** Objects of a namespace whose APIServiceNamespace changes. */
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

function onSynced(store: Pick<Store<never>, 'whenSynced'>, listener: () => void): () => void {
  const stop = new AbortController();
  store.whenSynced(stop.signal).then(listener, () => undefined);
  return () => stop.abort();
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

/** Until its uid is known, copies get no owner reference. */
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
    // Without a version, objects can be neither read nor changed.
    remaining: () => 0,
    problems: () => [problem],
    refusedWatches: () => [],
    // `Ready` must not wait for a kind that cannot be synced.
    served: () => true,
    close() {},
  };
}
