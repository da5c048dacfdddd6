import type { Resource } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store, StoreEvent, StoreHandle } from '../../kube/store.ts';
import type { CrdView } from '../stores/consumer-stores.ts';
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
 * Watches the consumer's objects of a bound kind while its CRD is established. Without the CRD every list fails, and a missing kind
 * must not look like a kind whose objects were all deleted.
 */
export class ConsumerObjects {
  readonly #options: ConsumerObjectsOptions;
  readonly #listeners = new Map<Listener, () => void>();
  readonly #listedListeners = new Set<() => void>();
  readonly #unsubscribe: () => void;
  readonly #closed = new AbortController();
  #open: { readonly crdUid: string; readonly handle: StoreHandle<SyncedObject> } | undefined;

  constructor(options: ConsumerObjectsOptions) {
    this.#options = options;
    this.#unsubscribe = options.crds.subscribe(({ key }) => {
      if (key === options.crd) this.#follow();
    });
  }

  /** `absent`: the CRD does not exist. `unknown`: the CRD is not established or not known, or the objects have not been listed. */
  get state(): 'unknown' | 'absent' | 'listed' {
    if (this.#open) return this.#open.handle.store.synced ? 'listed' : 'unknown';
    const { crds, crd } = this.#options;
    return crds.synced && !crds.get(crd) ? 'absent' : 'unknown';
  }

  get(key: string): SyncedObject | undefined {
    return this.#open?.handle.store.get(key);
  }

  list(): Iterable<SyncedObject> {
    return this.#open?.handle.store.list() ?? [];
  }

  inNamespace(namespace: string): readonly SyncedObject[] {
    return this.#open?.handle.store.byIndex(byNamespace, namespace) ?? [];
  }

  /** As `Store.subscribe`. When the CRD is no longer established, the objects leave without an event: use `onListed` and `state`. */
  subscribe(listener: Listener): () => void {
    const subscription: Listener = (event) => listener(event);
    this.#listeners.set(subscription, this.#open?.handle.store.subscribe(subscription) ?? noop);
    return () => {
      this.#listeners.get(subscription)?.();
      this.#listeners.delete(subscription);
    };
  }

  /** Calls `listener` when the objects were listed, and when the CRD is no longer established. Returns a function that unsubscribes. */
  onListed(listener: () => void): () => void {
    this.#listedListeners.add(listener);
    return () => void this.#listedListeners.delete(listener);
  }

  close(): void {
    this.#unsubscribe();
    this.#closed.abort();
    this.#release();
    this.#listeners.clear();
    this.#listedListeners.clear();
  }

  #follow(): void {
    const { cluster, crds, crd, resource } = this.#options;
    const view = crds.get(crd);
    const crdUid = view?.established ? view.uid : undefined;
    if (crdUid === this.#open?.crdUid) return;
    this.#release();
    if (crdUid === undefined) {
      this.#notifyListed();
      return;
    }
    const handle = cluster.watch({ resource, project: projectObject, indexes, followsSchema: true });
    const open = { crdUid, handle };
    this.#open = open;
    for (const listener of this.#listeners.keys()) this.#listeners.set(listener, handle.store.subscribe(listener));
    handle.store.whenSynced(this.#closed.signal).then(
      () => {
        if (this.#open === open) this.#notifyListed();
      },
      () => undefined,
    );
  }

  #release(): void {
    for (const [listener, unsubscribe] of this.#listeners) {
      unsubscribe();
      this.#listeners.set(listener, noop);
    }
    this.#open?.handle.release();
    this.#open = undefined;
  }

  #notifyListed(): void {
    for (const listener of [...this.#listedListeners]) listener();
  }
}

const byNamespace = 'namespace';
const indexes = { [byNamespace]: ({ object }: SyncedObject) => [object.metadata.namespace ?? ''] };
const noop = (): void => {};

/**
 * The version to sync: the storage version if it is a candidate, otherwise the first candidate. Candidates are the served versions; if the
 * export names versions, only those. Undefined without candidates.
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
