import {
  type ClusterInventory,
  clusterInventoryKind,
  readClusterInventory,
} from '../../api/inventory/cluster-inventory.ts';
import { abandonAnnotation, forceAnnotation } from '../../api/inventory/names.ts';
import { apiVersionOf, type KubeObject, keyOf } from '../../api/object.ts';
import type { Projected } from '../../kube/store.ts';
import type { Entry, EntryContent } from '../entry.ts';
import { entryBytes } from '../policy/entry-size.ts';
import { Packed } from './packed.ts';

/** An entry as a store holds it. */
export interface EntryView extends Entry, Projected {}

const ours = [forceAnnotation(''), abandonAnnotation('')];

/** What is kept of a ClusterInventory; undefined for one that does not read as one. */
export function entryView(object: KubeObject): EntryView | undefined {
  const { resource } = clusterInventoryKind;
  // Items of lists come without them.
  const read = readClusterInventory({ ...object, apiVersion: apiVersionOf(resource), kind: resource.kind });
  if (!read.ok) return undefined;
  const { metadata } = read.value;
  const { namespace, name, uid, resourceVersion } = metadata;
  if (!namespace || !uid || !resourceVersion) return undefined;
  return viewOf(read.value, { namespace, name, uid }, resourceVersion, object);
}

function viewOf(
  { metadata, spec, status }: ClusterInventory,
  ref: Entry['ref'],
  resourceVersion: string,
  object: KubeObject,
): EntryView {
  // The spec as it is: components may have fields that the schema does not know.
  const content = new Packed<EntryContent>({ spec: object.spec, status: { outputs: status?.outputs ?? {} } });
  return {
    key: keyOf(ref),
    uid: ref.uid,
    resourceVersion,
    ref,
    deleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    labels: metadata.labels ?? {},
    annotations: annotationsOf(metadata.annotations ?? {}),
    mode: spec.mode,
    suspended: spec.suspend,
    kubeconfigSecretRef: spec.kubeconfigSecretRef,
    kubeconfigSetBy: spec.kubeconfigSetBy,
    disabled: disabledIn(spec.components ?? {}),
    bytes: entryBytes(object),
    get content() {
      return content.value;
    },
    components: status?.components ?? [],
    conditions: status?.conditions ?? [],
  };
}

function annotationsOf(all: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => ours.some((prefix) => name.startsWith(prefix))));
}

const nothingDisabled: ReadonlySet<string> = new Set();

function disabledIn(components: Readonly<Record<string, { readonly enabled: boolean }>>): ReadonlySet<string> {
  const names = Object.entries(components).filter(([, { enabled }]) => !enabled);
  return names.length === 0 ? nothingDisabled : new Set(names.map(([name]) => name));
}
