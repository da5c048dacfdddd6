import type { ClusterInventory, ComponentStatus, Setter } from '../api/inventory/cluster-inventory.ts';
import type { Mode } from '../api/inventory/fields.ts';
import type { Condition, ObjectName } from '../api/object.ts';

/** Which entry: name and uid, so that nothing of one is used for another of the same name. */
export interface EntryRef extends Required<ObjectName> {
  readonly uid: string;
}

/** What pointers are resolved in. Below `spec.cluster`, a component's `config` and `outputs` everything is free-form and hostile. */
export interface EntryContent {
  readonly spec: unknown;
  readonly status: { readonly outputs: Readonly<Record<string, unknown>> };
}

/** One version of an entry as the inventory has it. */
export interface Entry {
  readonly ref: EntryRef;
  readonly resourceVersion: string;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Those of ours alone: force and abandon. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly mode: Mode;
  readonly suspended: boolean;
  readonly kubeconfigSecretRef: ClusterInventory['spec']['kubeconfigSecretRef'] | undefined;
  readonly kubeconfigSetBy: Setter | undefined;
  /** Of `spec.components`: the names of those with `enabled: false`. */
  readonly disabled: ReadonlySet<string>;
  /** Size as it counts for the limit, bytes. */
  readonly bytes: number;
  readonly content: EntryContent;
  readonly components: readonly ComponentStatus[];
  readonly conditions: readonly Condition[];
}
