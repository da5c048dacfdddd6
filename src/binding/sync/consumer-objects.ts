import type { Resource } from '../../api/object.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Store } from '../../kube/store.ts';
import { type CrdView, mayBeServed } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, BoundVersion, ExportView } from '../stores/provider-stores.ts';
import { WatchSet } from '../stores/watch-set.ts';
import { projectObject, type SyncedObject } from './synced-object.ts';

export interface ConsumerObjectsOptions {
  readonly cluster: Cluster;
  readonly crds: Store<CrdView>;
  /** Name of the CRD of `resource`. */
  readonly crd: string;
  readonly resource: Resource;
}

const byNamespace = 'namespace';
const indexes = { [byNamespace]: ({ object }: SyncedObject) => [object.metadata.namespace ?? ''] };

/**
 * Watches the consumer's objects of a bound kind while its CRD may be served, perhaps before it is
 * established. While lists fail, `state` is `unknown`. Never set the store option `optional`: an
 * empty store would delete all copies.
 */
export class ConsumerObjects extends WatchSet<SyncedObject> {
  readonly #options: ConsumerObjectsOptions;
  readonly #unsubscribe: () => void;
  /** Of the last CRD that was established. */
  #establishedUid: string | undefined;
  /** Of the CRD whose objects are watched. */
  #watchedUid: string | undefined;

  constructor(options: ConsumerObjectsOptions) {
    const { cluster, crds, resource } = options;
    super(cluster, { resource, project: projectObject, indexes, followsSchema: true });
    this.#options = options;
    this.#unsubscribe = crds.subscribe(({ key }) => {
      if (key === options.crd) this.#followCrd();
    });
  }

  /** `absent`: no CRD. `unknown`: not served, or not listed yet. */
  get state(): 'unknown' | 'absent' | 'listed' {
    if (this.#watchedUid !== undefined) return this.store(this.#watchedUid)?.synced ? 'listed' : 'unknown';
    const { crds, crd } = this.#options;
    return crds.synced && !crds.get(crd) ? 'absent' : 'unknown';
  }

  inNamespace(namespace: string): readonly SyncedObject[] {
    return this.byIndex(byNamespace, namespace);
  }

  override close(): void {
    this.#unsubscribe();
    this.#watchedUid = undefined;
    super.close();
  }

  #followCrd(): void {
    const { crds, crd } = this.#options;
    const view = crds.get(crd);
    const wasEstablished = view?.uid === this.#establishedUid;
    if (view?.established) this.#establishedUid = view.uid;
    const uid = view && mayBeServed(view) && (view.established || !wasEstablished) ? view.uid : undefined;
    const before = this.#watchedUid;
    if (uid === before) return;
    this.#watchedUid = uid;
    if (before !== undefined) this.end(before);
    if (uid !== undefined) this.begin(uid);
  }
}

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
