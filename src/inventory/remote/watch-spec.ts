import type { RemoteWatch } from '../../api/inventory/component-reconciler.ts';
import { entryUidLabel } from '../../api/inventory/names.ts';
import { type KubeObject, keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import type { Projected, StoreSpec } from '../../kube/store.ts';

/** Of one watch in a managed cluster, whose server is in the hands of users: more is not kept. */
export const maxObjects = 5_000;

/** A kind that is not there yet is no fault: the watch begins when it comes. */
export function watchSpec({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): StoreSpec<Watched> {
  const selectors = [labelSelector ?? '', cluster === 'management' ? entryUidLabel : ''].filter((one) => one !== '');
  return {
    // The kind is only for messages, and whether it is namespaced does not matter to a watch.
    resource: { group, version, plural: resource, kind: resource, namespaced: true },
    ...(namespace === undefined ? {} : { namespace }),
    ...(selectors.length === 0 ? {} : { labelSelector: selectors.join(',') }),
    ...(cluster === 'managed' ? { maxObjects } : {}),
    project: projections[fields],
    optional: true,
  };
}

/** `managed/services.example.org`, as reasons of runs have it. */
export const aboutOf = ({ cluster, group, resource }: RemoteWatch): string =>
  `${cluster}/${resource}${group === '' ? '' : `.${group}`}`;

/** Equal watches have equal texts. */
export const watchText = ({
  cluster,
  group,
  version,
  resource,
  namespace,
  labelSelector,
  fields,
}: RemoteWatch): string =>
  JSON.stringify([cluster, group, version, resource, namespace ?? '', labelSelector ?? '', fields]);

/** What is kept of a watched object: whose it is, and a digest of the fields that matter. */
export interface Watched extends Projected {
  /** By its label; empty for objects of managed clusters, as a rule. */
  readonly entryUid: string;
  readonly digest: string;
}

/** One function for each kind of field, so that watches of the same share their connection. */
const projections: Readonly<Record<RemoteWatch['fields'], (object: KubeObject) => Watched | undefined>> = {
  metadata: (object) => watched(object, ({ metadata: { labels, annotations } }) => [labels, annotations]),
  // Kinds without a generation count by all that is neither metadata nor status.
  spec: (object) => watched(object, ({ metadata, status: _, ...rest }) => metadata.generation ?? { ...rest }),
  status: (object) => watched(object, ({ status }) => status ?? null),
};

/** Characters of an object's identity; no API server gives more, and what is kept of each object is not for others to decide. */
const longestIdentity = 1_024;

function watched(object: KubeObject, fields: (object: KubeObject) => unknown): Watched | undefined {
  const { metadata } = object;
  const { uid = '', resourceVersion = '', labels, deletionTimestamp = '' } = metadata;
  const [key, entryUid] = [keyOf(metadata), labels?.[entryUidLabel] ?? ''];
  if (`${key}${uid}${resourceVersion}${entryUid}${deletionTimestamp}`.length > longestIdentity) return undefined;
  return {
    key,
    uid,
    resourceVersion,
    entryUid,
    digest: `${uid} ${deletionTimestamp} ${sha256Hex(canonicalJson(fields(object))).slice(0, 16)}`,
  };
}
