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
 * Watches the consumer's objects of a bound kind while its CRD may be served, perhaps before it is
 * established. While lists fail, `state` is `unknown`. Never set the store option `optional`: an
 * empty store would delete all copies.
 */
export class ConsumerObjects {
  readonly #options: ConsumerObjectsOptions;
  readonly #listeners = new Map<Listener, () => void>();
  readonly #stateListeners = new Set<() => void>();
  readonly #refusalListeners = new Set<() => void>();
  readonly #unsubscribe: () => void;
  readonly #closed = new AbortController();
  /** Of the last CRD that was established. */
  #establishedUid: string | undefined;
  #open:
    | { readonly crdUid: string; readonly handle: StoreHandle<SyncedObject>; readonly stopRefusals: () => void }
    | undefined;

  constructor(options: ConsumerObjectsOptions) {
    this.#options = options;
    this.#unsubscribe = options.crds.subscribe(({ key }) => {
      if (key === options.crd) this.#followCrd();
    });
  }

  /** `absent`: no CRD. `unknown`: not served, or not listed yet. */
  get state(): 'unknown' | 'absent' | 'listed' {
    if (this.#open) return this.#open.handle.store.synced ? 'listed' : 'unknown';
    const { crds, crd } = this.#options;
    return crds.synced && !crds.get(crd) ? 'absent' : 'unknown';
  }

  /** Undefined also while `state` is not `listed`; so are `list` and `inNamespace` empty. */
  get(key: string): SyncedObject | undefined {
    return this.#open?.handle.store.get(key);
  }

  list(): Iterable<SyncedObject> {
    return this.#open?.handle.store.list() ?? [];
  }

  inNamespace(namespace: string): readonly SyncedObject[] {
    return this.#open?.handle.store.byIndex(byNamespace, namespace) ?? [];
  }

  /** When the watch ends, objects leave without an event: use `onStateChange`. */
  subscribe(listener: Listener): () => void {
    // A new function, so that the same listener can subscribe twice.
    const subscription: Listener = (event) => listener(event);
    this.#listeners.set(subscription, this.#open?.handle.store.subscribe(subscription) ?? noop);
    return () => {
      this.#listeners.get(subscription)?.();
      this.#listeners.delete(subscription);
    };
  }

  /** Calls back when objects have been listed or their watch has ended. */
  onStateChange(listener: () => void): () => void {
    this.#stateListeners.add(listener);
    return () => void this.#stateListeners.delete(listener);
  }

  get failing(): StoreFailure | undefined {
    return this.#open?.handle.store.failing;
  }

  /** Also when the watch ends. */
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

/** The storage version if it is served and wanted, else the first one that is. */
export function syncVersion(schema: BoundSchemaView, exported: ExportView): BoundVersion | undefined {
  const wanted = wantedVersions(schema, exported);
  const candidates = schema.versions.filter(
    ({ name, served }) => served && (wanted.length === 0 || wanted.includes(name)),
  );
  return candidates.find(({ storage }) => storage) ?? candidates[0];
}

export function wantedVersions({ group, names }: BoundSchemaView, { resources }: ExportView): readonly string[] {
  return resources.find((entry) => entry.group === group && entry.resource === names.plural)?.versions ?? [];
}

export function consumerResource({ group, names, scope }: BoundSchemaView, version: string): Resource {
  return { group, version, plural: names.plural, kind: names.kind, namespaced: scope === 'Namespaced' };
}
