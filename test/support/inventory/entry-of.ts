import type { ClusterInventory } from '../../../src/api/inventory/cluster-inventory.ts';
import { inventoryGroup } from '../../../src/api/inventory/names.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { entryBytes } from '../../../src/inventory/policy/entry-size.ts';
import { own } from '../../../src/kit/json-value.ts';

/** The store's view of a valid entry. */
export function entryOf(object: ClusterInventory): Entry {
  const { metadata, spec, status } = object;
  return {
    ref: { namespace: metadata.namespace ?? '', name: metadata.name, uid: metadata.uid ?? '' },
    resourceVersion: metadata.resourceVersion ?? '',
    deleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    labels: metadata.labels ?? {},
    annotations: Object.fromEntries(
      Object.entries(metadata.annotations ?? {}).filter(([name]) => name.split('/')[0]?.endsWith(inventoryGroup)),
    ),
    mode: spec.mode,
    suspended: spec.suspend,
    kubeconfigSecretRef: spec.kubeconfigSecretRef,
    kubeconfigSetBy: spec.kubeconfigSetBy,
    disabled: new Set(
      Object.entries(spec.components ?? {}).flatMap(([name, component]) =>
        own(component, 'enabled') === false ? [name] : [],
      ),
    ),
    named: Object.keys(spec.components ?? {}),
    bytes: entryBytes(object),
    content: { spec, status: { outputs: status?.outputs ?? {} } },
    components: status?.components ?? [],
    waitingFor: status?.waitingFor,
    conditions: status?.conditions ?? [],
  };
}
