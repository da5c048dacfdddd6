import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Projected, StoreSpec } from '../../kube/store.ts';

/** Maximum number of objects of one watch in a managed cluster. Users control that cluster's API server. */
export const maxObjects = 5_000;

/** The store spec of a watch. If the kind does not exist yet, the watch starts once it does. */
export function watchSpec({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): StoreSpec<WatchedObject> {
  const selectors = [labelSelector ?? '', cluster === 'management' ? entryUidLabel : ''].filter(
    (selector) => selector !== '',
  );
  return {
    // Only messages contain the kind. The scope does not matter for a watch.
    resource: { group, version, plural: resource, kind: resource, namespaced: true },
    ...(namespace === undefined ? {} : { namespace }),
    ...(selectors.length === 0 ? {} : { labelSelector: selectors.join(',') }),
    ...(cluster === 'managed' ? { maxObjects } : {}),
    project: projections[fields],
    optional: true,
  };
}

/** Text for trigger reasons: the cluster, the resource, and its group, such as `managed/services.example.org`. */
export const detailOf = ({ cluster, group, resource }: RemoteWatch): string =>
  `${cluster}/${resource}${group === '' ? '' : `.${group}`}`;

/** Text that is equal for watches with equal settings. */
export const watchKey = ({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): string =>
  JSON.stringify([cluster, group, version, resource, namespace ?? '', labelSelector ?? '', fields]);

/** The stored data of a watched object: its entry, and a digest of the part that `watch.fields` selects. */
export interface WatchedObject extends Projected {
  /** UID of the entry from the label; empty without the label, as usual in managed clusters. */
  readonly entryUid: string;
  readonly digest: string;
}

/** Constant functions, because watches share a store only if their projections are identical. */
const projections: Readonly<Record<RemoteWatch['fields'], (object: KubeObject) => WatchedObject | undefined>> = {
  metadata: (object) => projectWatched(object, ({ metadata: { labels, annotations } }) => [labels, annotations]),
  // A kind without a generation: everything except metadata and status.
  spec: (object) => projectWatched(object, ({ metadata, status: _, ...rest }) => metadata.generation ?? { ...rest }),
  status: (object) => projectWatched(object, ({ status }) => status ?? null),
};

/**
 * Maximum length of an object's names and versions together, in characters. The server ignores objects beyond it. A genuine API server
 * never exceeds it.
 */
const maxIdentityLength = 1_024;

function projectWatched(object: KubeObject, fields: (object: KubeObject) => unknown): WatchedObject | undefined {
  const { metadata } = object;
  const { uid = '', resourceVersion = '', labels, deletionTimestamp = '' } = metadata;
  const key = keyOf(metadata);
  const entryUid = labels?.[entryUidLabel] ?? '';
  if (`${key}${uid}${resourceVersion}${entryUid}${deletionTimestamp}`.length > maxIdentityLength) return undefined;
  return {
    key,
    uid,
    resourceVersion,
    entryUid,
    digest: `${uid} ${deletionTimestamp} ${sha256Hex(canonicalJson(fields(object))).slice(0, 16)}`,
  };
}
