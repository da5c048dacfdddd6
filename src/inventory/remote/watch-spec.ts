import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Projected, StoreSpec } from '../../kube/store.ts';

/** Of one watch in a managed cluster, whose API server its users control. */
export const maxObjects = 5_000;

/** If the kind does not exist yet, the watch starts once it does. */
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

/** For trigger reasons, such as `managed/services.example.org`. */
export const detailOf = ({ cluster, group, resource }: RemoteWatch): string =>
  `${cluster}/${resource}${group === '' ? '' : `.${group}`}`;

/** Equal for watches with equal settings. */
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

/** `digest`: of the part that `watch.fields` selects. */
export interface WatchedObject extends Projected {
  /** From the label; empty without it, as usual in managed clusters. */
  readonly entryUid: string;
  readonly digest: string;
}

/** Constant functions: watches share a store only if their projections are identical. */
const projections: Readonly<Record<RemoteWatch['fields'], (object: KubeObject) => WatchedObject | undefined>> = {
  metadata: (object) => projectWatched(object, ({ metadata: { labels, annotations } }) => [labels, annotations]),
  spec: (object) => projectWatched(object, ({ metadata, status: _, ...rest }) => metadata.generation ?? { ...rest }),
  status: (object) => projectWatched(object, ({ status }) => status ?? null),
};

/** Of an object's names and versions; only a forged one exceeds it, and is ignored. */
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
