import type { Resource } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store, StoreEvent, StoreFailure, StoreHandle } from '../../kube/store.ts';
import { type CrdView, mayBeServed } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, BoundVersion, ExportView } from '../stores/provider-stores.ts';
import { projectObject, type SyncedObject } from './synced-object.ts';

type Listener = (event: StoreEvent<SyncedObject>) => void;

export interface ConsumerObjectsOptions {
  readonly cluster: Cluster;
  readonly crds: Store<CrdView>;
  /** Name of the CRD of `resource`. */
  readonly crd: string;
  readonly resource: Resource;
}

/**
 * Watches the consumer's objects of a bound kind while its CRD exists and may be served. The watch starts before the CRD is established,
 * because some API servers serve a kind seconds earlier. When a CRD is no longer established, the watch ends. While the API server does not
 * serve the kind, lists fail and `state` stays `unknown`. Do not set the store option `optional`: an optional store would then be empty,
 * and the server would delete all copies.
 */
export class ConsumerObjects {
  readonly #options: ConsumerObjectsOptions;
  /** By listener: ends its subscription to the open watch. */
  readonly #listeners = new Map<Listener, () => void>();
  readonly #stateListeners = new Set<() => void>();
  readonly #refusalListeners = new Set<() => void>();
  readonly #unsubscribe: () => void;
  readonly #closed = new AbortController();
  /** uid of the last CRD that was established. */
  #establishedUid: string | undefined;
  /** The open watch, and the uid of the CRD for which it was opened. */
  #open:
    | { readonly crdUid: string; readonly handle: StoreHandle<SyncedObject>; readonly stopRefusals: () => void }
    | undefined;

  constructor(options: ConsumerObjectsOptions) {
    this.#options = options;
    this.#unsubscribe = options.crds.subscribe(({ key }) => {
      if (key === options.crd) this.#followCrd();
    });
  }

  /** `absent`: the CRD does not exist. `unknown`: the CRD is not known or not served, or the objects have not been listed. */
  get state(): 'unknown' | 'absent' | 'listed' {
    if (this.#open) return this.#open.handle.store.synced ? 'listed' : 'unknown';
    const { crds, crd } = this.#options;
    return crds.synced && !crds.get(crd) ? 'absent' : 'unknown';
  }

  /**
   * The object; undefined if it does not exist, and while `state` is not `listed`. Check `state` before you treat an object as deleted,
   * also with `list` and `inNamespace`.
   */
  get(key: string): SyncedObject | undefined {
    return this.#open?.handle.store.get(key);
  }

  /** All known objects; see `get`. */
  list(): Iterable<SyncedObject> {
    return this.#open?.handle.store.list() ?? [];
  }

  /** The known objects of the namespace; see `get`. */
  inNamespace(namespace: string): readonly SyncedObject[] {
    return this.#open?.handle.store.byIndex(byNamespace, namespace) ?? [];
  }

  /** As `Store.subscribe`. When the watch ends, the objects leave without an event: use `onStateChange` and `state`. */
  subscribe(listener: Listener): () => void {
    // A new function, so that the same listener can subscribe twice.
    const subscription: Listener = (event) => listener(event);
    this.#listeners.set(subscription, this.#open?.handle.store.subscribe(subscription) ?? noop);
    return () => {
      this.#listeners.get(subscription)?.();
      this.#listeners.delete(subscription);
    };
  }

  /**
   * Calls `listener` when the objects have been listed, and when their watch ends: the CRD was deleted or replaced, or is no longer
   * established. Not called when `state` changes between `unknown` and `absent`. Returns a function that unsubscribes.
   */
  onStateChange(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  get failing(): StoreFailure | undefined {
    return this.#open?.handle.store.failing;
  }

  /** As `Store.onRefusal`; also called when the watch ends. */
  onRefusal(listener: () => void): () => void {
    this.#refusalListeners.add(listener);
    return () => void this.#refusalListeners.delete(listener);
  }

  close(): void {
    this.#unsubscribe();
    this.#closed.abort();
    this.#release();
    this.#listeners.clear();
    this.#stateListeners.clear();
    this.#refusalListeners.clear();
  }

  #followCrd(): void {
    const { crds, crd } = this.#options;
    const view = crds.get(crd);
    const wasEstablished = view?.uid === this.#establishedUid;
    if (view?.established) this.#establishedUid = view.uid;
    const crdUid = view && mayBeServed(view) && (view.established || !wasEstablished) ? view.uid : undefined;
    if (crdUid === this.#open?.crdUid) return;
    const hadWatch = this.#open !== undefined;
    this.#release();
    if (crdUid !== undefined) this.#watch(crdUid);
    if (hadWatch) this.#notifyState();
  }

  #watch(crdUid: string): void {
    const { cluster, resource } = this.#options;
    const handle = cluster.watch({ resource, project: projectObject, indexes, followsSchema: true });
    const open = { crdUid, handle, stopRefusals: handle.store.onRefusal(() => this.#notifyRefusal()) };
    this.#open = open;
    for (const listener of this.#listeners.keys()) this.#listeners.set(listener, handle.store.subscribe(listener));
    handle.store.whenSynced(this.#closed.signal).then(
      () => {
        if (this.#open === open) this.#notifyState();
      },
      () => undefined,
    );
  }

  #release(): void {
    for (const [listener, unsubscribe] of this.#listeners) {
      unsubscribe();
      this.#listeners.set(listener, noop);
    }
    if (!this.#open) return;
    const { handle, stopRefusals } = this.#open;
    this.#open = undefined;
    stopRefusals();
    handle.release();
    this.#notifyRefusal();
  }

  #notifyRefusal(): void {
    for (const listener of [...this.#refusalListeners]) listener();
  }

  #notifyState(): void {
    for (const listener of [...this.#stateListeners]) listener();
  }
}

const byNamespace = 'namespace';
const indexes = { [byNamespace]: ({ object }: SyncedObject) => [object.metadata.namespace ?? ''] };
const noop = (): void => {};

/**
 * The version to sync: the storage version if it is a candidate, otherwise the first candidate. Candidates are the served versions. If the
 * export names versions, only these versions can be candidates. Undefined without candidates.
 */
export function syncVersion(schema: BoundSchemaView, exported: ExportView): BoundVersion | undefined {
  const wanted = wantedVersions(schema, exported);
  const candidates = schema.versions.filter(
    ({ name, served }) => served && (wanted.length === 0 || wanted.includes(name)),
  );
  return candidates.find(({ storage }) => storage) ?? candidates[0];
}

/** The versions of the resource that the export names; empty if it allows any. */
export function wantedVersions({ group, names }: BoundSchemaView, { resources }: ExportView): readonly string[] {
  return resources.find((entry) => entry.group === group && entry.resource === names.plural)?.versions ?? [];
}

/** The resource of the bound kind in the consumer. */
export function consumerResource({ group, names, scope }: BoundSchemaView, version: string): Resource {
  return { group, version, plural: names.plural, kind: names.kind, namespaced: scope === 'Namespaced' };
}
