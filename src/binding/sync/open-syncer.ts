import { allowDeletesAnnotation, bindGroup, clusterNamespaceAnnotation } from '../../api/binding/names.ts';
import type { OwnerReference, Resource } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import type { BindingDeps } from '../deps.ts';
import { requestServiceNamespace } from '../namespaces/service-namespaces.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { byServiceNamespace } from '../stores/provider-stores.ts';
import { ConsumerObjects } from './consumer-objects.ts';
import { openCopies } from './copies.ts';
import { DeleteBreaker } from './delete-breaker.ts';
import { gathered } from './gathered.ts';
import { isolationOf, type NamespacePairs } from './isolation.ts';
import { objectProblems, type Report } from './object-problems.ts';
import { type Origin, ownershipOf } from './ownership.ts';
import type { Terms } from './plan.ts';
import { Sides } from './sides.ts';
import { Latency, noSyncObserver } from './sync-observer.ts';
import { SyncReconciler } from './sync-reconciler.ts';
import { SyncSource } from './sync-source.ts';
import { consumerResource, syncVersion } from './sync-version.ts';
import { annotationOf, copyProjection, isHeld, type SyncedObject } from './synced-object.ts';
import type { Syncer, SyncerOptions } from './syncer.ts';
import { Writer } from './writer.ts';

/** Keys that are worked on at a time. */
const WORKERS = 32;
/** A provider that takes longer for a list is told of. */
const LIST_MS = 30_000;
/** Changes are gathered for so long before they are told. */
const TELL_MS = 200;

/** Opens the watches of one bound kind; what they show is acted on once the controllers run. */
export function openSyncer(options: SyncerOptions, deps: BindingDeps): Syncer {
  const { session, exported, schema, mode, observer = noSyncObserver, random = Math.random } = options;
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
  const sides = new Sides({
    consumers,
    copies,
    isolation,
    clusterNamespace,
    clock,
  });
  const log = deps.log.child({ provider: session.id, export: exported.name, kind: schema.name });
  const tell = gathered(clock, TELL_MS, options.onChange ?? (() => undefined));
  const objects = objectProblems(consumer, deps.events, tell.soon);
  const breaker = new DeleteBreaker();
  const latency = { up: new Latency(clock), down: new Latency(clock) };
  const writer = new Writer({ clock, log, observer, random, wake: (key) => source.wake(key, 'reachable') });

  let heldBefore = 0;
  const report: Report = (...args) => {
    if (breaker.held !== heldBefore) {
      if (heldBefore === 0) log.error('deletes of copies are held back', { copies: breaker.held });
      heldBefore = breaker.held;
      tell.soon();
    }
    objects.report(...args);
  };

  const origin = (): Origin => ({ clusterNamespace, bindingUid: deps.stores.bindings.get(exported.name)?.uid });
  const terms = (): Terms => ({
    ...origin(),
    provider,
    owner: isolation.ownedByClusterNamespace ? ownerOf(session) : undefined,
    statusSubresource: version.subresources.status !== undefined,
  });
  const reconciler = new SyncReconciler({
    mode,
    resources: { consumer, provider },
    clients: { consumer: deps.client, provider: session.client },
    consumers,
    copies,
    isolation,
    namespacesKnown,
    terms,
    sides,
    copyProjection: copyProjection(session),
    writer,
    breaker,
    requestNamespace: (namespace, signal) => requestServiceNamespace(session, namespace, { signal }),
    observer,
    latency,
    report,
    clock,
  });
  const source: SyncSource = new SyncSource({
    consumers,
    copies,
    isolation,
    sides,
    ...(usesNamespaces ? { serviceNamespaces: { store: serviceNamespaces, clusterNamespace } } : {}),
    onStart() {
      for (const kept of [sides, writer, breaker, reconciler, latency.up, latency.down]) kept.clear();
    },
    onEvent(side, key) {
      (side === 'consumer' ? latency.up : latency.down).seen(key);
      if (mode !== 'sync') tell.soon();
    },
  });
  const name = `sync/${session.id}/${exported.name}/${schema.name}`;
  const controller = new Controller({
    name,
    sources: [source],
    reconciler,
    workers: WORKERS,
    clock,
    log: deps.log,
    // Sessions come and go with every rotation, series stay.
    metrics: deps.metrics.controller(`sync/${exported.name}/${schema.name}`),
    random,
  });
  // Not gathered: somebody may be waiting for the kind.
  if (options.onChange) consumers.onListed(options.onChange);
  const openedAtMs = clock.monotonic();
  const cancelSlow = clock.schedule(LIST_MS, tell.soon);

  const resync = (): void => {
    writer.clear();
    source.wakeAll('resync');
  };
  // What was not kept may be kept now.
  const ignoreCrd = crds.subscribe((event) => {
    if (event.key === crd && event.type === 'updated' && event.before.generation !== event.now.generation) resync();
  });

  const ours = (): SyncedObject[] =>
    [...copies.store.list()].filter((copy) => annotationOf(copy, clusterNamespaceAnnotation) === clusterNamespace);
  /** Those that do not prove of what they are copies, or are where the copy of that is not, stay. */
  const isToGo = (copy: SyncedObject): boolean => {
    const key = isolation.consumerKeyOf(copy.key);
    return key !== undefined && ownershipOf(copy, undefined, origin(), key) === 'orphan';
  };
  return {
    controllers: [controller],
    resync,
    allowDeletes() {
      for (const key of breaker.allow()) source.wake(key, 'allowed');
    },
    held() {
      const isKnown = mode !== 'drain' || (copies.store.synced && namespacesKnown());
      if (consumers.state === 'unknown' || !isKnown) return Number.POSITIVE_INFINITY;
      const marked = [...consumers.list()].filter(isHeld).length;
      if (mode !== 'drain') return marked;
      return marked + ours().filter(isToGo).length;
    },
    problems() {
      const kind = schema.name;
      const all = objects.problems.list(kind);
      if (breaker.held > 0) all.unshift(`${kind}: ${heldBack(breaker.held)}`);
      if (clock.monotonic() - openedAtMs < LIST_MS) return all;
      if (!copies.store.synced)
        all.unshift(`${kind}: the provider has not listed its objects yet; see that we may list and watch them there`);
      if (consumers.state === 'unknown')
        all.unshift(
          `${kind}: this cluster has not listed its objects yet; see that the konnector may list and watch them`,
        );
      return all;
    },
    served: () => consumers.state === 'listed',
    size: () => ({ objects: [...consumers.list()].length, copies: ours().length }),
    get watchAgeMs() {
      return copies.store.ageMs;
    },
    close() {
      ignoreCrd();
      cancelSlow();
      tell.stop();
      consumers.close();
      copies.close();
    },
  };
}

const heldBack = (copies: number): string =>
  `${copies} copies in the provider have no object here any more, and nobody saw those being deleted. They are not deleted, because so many at once look like lost data. Restore the objects, or set the annotation ${allowDeletesAnnotation} on the binding to a new value to have the copies deleted`;

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
    held: () => 0,
    problems: () => [problem],
    served: () => true,
    size: () => ({ objects: 0, copies: 0 }),
    watchAgeMs: 0,
    close() {},
  };
}
