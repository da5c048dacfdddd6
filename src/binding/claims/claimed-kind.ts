import { clusterBindingName, ownerLabel } from '../../api/binding/names.ts';
import { keyOf, type Resource } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Clock } from '../../kit/clock.ts';
import { soleKonnector } from '../cluster-binding/plan-status.ts';
import type { BindingDeps } from '../deps.ts';
import { bindingMetrics } from '../metrics.ts';
import { requestServiceNamespace } from '../namespaces/service-namespaces.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { bySecret } from '../stores/consumer-stores.ts';
import type { ExportView, NamespaceView } from '../stores/views.ts';
import { DeleteBreaker } from '../sync/delete-breaker.ts';
import { Problems } from '../sync/problems.ts';
import { Latency } from '../sync/sync-observer.ts';
import type { SyncMode } from '../sync/syncer.ts';
import { ClaimReconciler } from './claim-reconciler.ts';
import { ClaimWriter } from './claim-writer.ts';
import type { ClaimedView } from './claimed-view.ts';
import { exemption } from './exemption.ts';
import type { OpenReferences } from './open-references.ts';
import { planClaim, planUnclaim } from './plan.ts';
import { ProviderObjects } from './provider-objects.ts';
import type { ReferenceIndex } from './reference-index.ts';
import { SelectedObjects } from './selected-objects.ts';
import type { ClaimSelector } from './selector.ts';
import type { UsedNamespaces } from './used-namespaces.ts';

/** What keeps the claimed objects of one kind in step. */
export interface ClaimedKind {
  readonly resource: Resource;
  readonly controller: Controller;
  /** How many deletes of copies are held back. */
  readonly held: number;
  /** While its binding goes: how many copies are left to delete. Infinity while that is not known. */
  left(): number;
  readonly watchAgeMs: number;
  readonly size: { readonly objects: number; readonly copies: number };
  problems(): readonly string[];
  resync(): void;
  allowDeletes(): void;
  close(): void;
}

export interface ClaimedKindOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly resource: Resource;
  readonly selector: ClaimSelector;
  readonly references: OpenReferences;
  readonly used: UsedNamespaces;
  /** `drain`: the binding goes, and what was copied with it. */
  readonly mode: SyncMode;
  /** Whether copies may be deleted by now that the binding goes. */
  readonly mayDelete: boolean;
  readonly random: () => number;
  readonly onChange: () => void;
}

const workers = 8;
/** A cluster that takes longer for a list is told of, milliseconds. */
const listMs = 30_000;
const notListed = 'they have not been listed here yet; see that the konnector may list and watch them';

export function openClaimedKind(options: ClaimedKindOptions, deps: BindingDeps): ClaimedKind {
  const { session, exported, resource, selector, references, used, mode, mayDelete, random, onChange } = options;
  const { clock, metrics, events, stores } = deps;
  const name = `claims/${session.id}/${exported.name}/${resource.plural}`;
  const measured = bindingMetrics(metrics);
  const observer = measured.observer(resource.plural);
  const problems = new Problems(onChange);
  const breaker = new DeleteBreaker();
  const latency = { up: new Latency(clock), down: new Latency(clock) };
  const hints = hintSource('resync');
  const consumer = new SelectedObjects(deps.consumer, resource, selector.watchSelector);
  const provider = new ProviderObjects({
    session,
    resource,
    clock,
    problems,
    consumerKeys: (namespace) => consumer.keysIn(namespace),
    onStart() {
      for (const kept of [writer, reconciler, breaker, latency.up, latency.down]) kept.clear();
    },
    onEvent: (key) => latency.down.seen(key),
  });
  const writer = new ClaimWriter({
    resource,
    clients: { consumer: deps.client, provider: session.client },
    clock,
    random,
    log: deps.log.child({ provider: session.id, export: exported.name, kind: resource.plural }),
    onWritten(side, key) {
      if (mode === 'drain') onChange();
      const direction = side === 'provider' ? 'up' : 'down';
      const seconds = latency[direction].take(key);
      if (seconds !== undefined) observer[direction](seconds);
    },
    onConflict: (side) => observer.conflict(side),
  });
  const reconciler = new ClaimReconciler({
    plan: mode === 'sync' ? planClaim : mayDelete ? planUnclaim : undefined,
    resource,
    consumer,
    provider,
    namespaces: stores.namespaces,
    writer,
    breaker,
    why: (object, namespace) => why(resource, selector, deps, { ...object, namespace }),
    isInvited: (namespace, name) =>
      used.has(namespace) ||
      references.index.invites(namespace, name) ||
      isMadeForProviders(stores.namespaces.get(namespace)),
    providerIdentity: () => session.clusterNamespaceUid,
    hasRival: () => hasRival(session),
    requestNamespace: (namespace, signal) => requestServiceNamespace(session, namespace, { signal }),
    problems,
    clock,
    events,
    wake: (key) => hints.hint(key, 'reachable'),
    onHeld: onChange,
    onSettled(key) {
      for (const direction of [latency.up, latency.down]) direction.take(key);
    },
  });
  const controller = new Controller({
    name,
    sources: [
      provider,
      ...consumer.sources((key) => latency.up.seen(key)),
      referenceSource(references.index, (name) => [...consumer.keysNamed(name), ...provider.keysNamed(name)]),
      hints,
      usedSource(used, (namespace) => provider.keysIn(namespace)),
      fromSubscription('namespace', stores.namespaces, (event) => {
        if (event.type === 'deleted') return [];
        const { now } = event;
        if (event.type === 'added') return [...provider.keysIn(now.name), ...consumer.keysIn(now.name)];
        return isMadeForProviders(now) && !isMadeForProviders(event.before) ? provider.keysIn(now.name) : [];
      }),
      // The Secrets that they name are exempt, so they must be known before the first is copied.
      fromSubscription('bindings', stores.bindings, () => []),
      fromSubscription('bundles', stores.bundles, () => []),
    ],
    reconciler,
    clock,
    log: deps.log,
    metrics: metrics.controller(name),
    random,
    workers,
  });
  const { plural } = resource;
  const list = slowList(consumer, clock, onChange);
  const stopMetrics = [
    measured.watching({ session: session.id, side: 'consumer', resource: plural }, () => consumer.ageMs),
    measured.watching({ session: session.id, side: 'provider', resource: plural }, () => provider.ageMs),
    measured.objects({ binding: exported.name, side: 'consumer', resource: plural }, () => consumer.size),
    measured.objects({ binding: exported.name, side: 'provider', resource: plural }, () => provider.size),
  ];
  return {
    resource,
    controller,
    get held() {
      return breaker.held;
    },
    left() {
      if (!consumer.synced || !provider.synced) return Number.POSITIVE_INFINITY;
      return reconciler.deletable(new Set([...consumer.keys(), ...provider.keys()]), planUnclaim);
    },
    get watchAgeMs() {
      return provider.ageMs;
    },
    get size() {
      return { objects: consumer.size, copies: provider.size };
    },
    problems: () => [...(list.isSlow ? [`${plural}: ${notListed}`] : []), ...problems.list(plural)],
    resync() {
      writer.clear();
      for (const key of new Set([...consumer.keys(), ...provider.keys()])) hints.hint(key);
    },
    allowDeletes() {
      for (const key of breaker.allow()) hints.hint(key, 'allowed');
    },
    close() {
      for (const stop of [list.stop, ...stopMetrics]) stop();
      consumer.close();
      provider.close();
      references.close();
    },
  };
}

/** The condition is there while one of the two hears the other. */
function hasRival({ clusterNamespace, stores }: ProviderSession): boolean {
  const found = stores.clusterBindings.get(keyOf({ namespace: clusterNamespace, name: clusterBindingName }));
  return found?.conditions.some(({ type, status }) => type === soleKonnector && status === 'False') ?? false;
}

/** Keys of what gains or loses something that refers to it. */
function referenceSource(index: ReferenceIndex, keysNamed: (name: string) => readonly string[]): Source {
  return {
    name: 'reference',
    start(emit, signal) {
      signal.throwIfAborted();
      const unsubscribe = index.subscribe(({ namespace, name }) => {
        const keys = namespace === undefined ? keysNamed(name) : [keyOf({ namespace, name })];
        for (const key of keys) emit(key, 'reference');
      });
      signal.addEventListener('abort', unsubscribe, { once: true });
      return Promise.resolve();
    },
  };
}

/** Keys of what the provider has for namespaces that begin to be used. */
function usedSource(used: UsedNamespaces, keysIn: (namespace: string) => readonly string[]): Source {
  return {
    name: 'used namespace',
    start(emit, signal) {
      signal.throwIfAborted();
      const unsubscribe = used.subscribe((namespace) => {
        for (const key of keysIn(namespace)) emit(key, 'used namespace');
      });
      signal.addEventListener('abort', unsubscribe, { once: true });
      return Promise.resolve();
    },
  };
}

/** A namespace that was made because a provider asked for it, or that its owner labelled as if it had been. */
const isMadeForProviders = (namespace: NamespaceView | undefined): boolean =>
  namespace?.labels[ownerLabel] === 'provider';

/** Notices that the consumer's own objects take too long to be listed; `onChange` is called when that begins and ends. */
function slowList(consumer: SelectedObjects, clock: Clock, onChange: () => void) {
  let isSlow = false;
  const tell = (now: boolean): void => {
    if (now === isSlow) return;
    isSlow = now;
    onChange();
  };
  consumer.whenSynced().then(
    () => tell(false),
    // It was closed before.
    () => undefined,
  );
  return {
    get isSlow() {
      return isSlow;
    },
    stop: clock.schedule(listMs, () => tell(!consumer.synced)),
  };
}

/** By which part of a claim an object is selected, seen under its consumer namespace; undefined when by none or when it is exempt. */
function why(
  resource: Resource,
  selector: ClaimSelector,
  { stores }: BindingDeps,
  { namespace, name, labels, type }: Pick<ClaimedView, 'namespace' | 'name' | 'labels' | 'type'>,
): string | undefined {
  const isKubeconfig = (key: string): boolean =>
    stores.bindings.byIndex(bySecret, key).length > 0 || stores.bundles.byIndex(bySecret, key).length > 0;
  const key = keyOf({ namespace, name });
  if (exemption(resource, { key, name, labels, type }, isKubeconfig) !== undefined) return undefined;
  return selector.why({ namespace, name, labels });
}
