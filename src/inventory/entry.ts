import type { ClusterInventory, ComponentStatus, KubeconfigSetter } from '../api/inventory/cluster-inventory.ts';
import type { Mode } from '../api/inventory/fields.ts';
import type { Condition, ObjectName } from '../api/object.ts';

/** Identifies an entry. The UID distinguishes it from a later entry with the same name. */
export interface EntryRef extends Required<ObjectName> {
  readonly uid: string;
}

/**
 * The document that JSON pointers refer to. Values below `spec.cluster`, a component's `config`, and `outputs` are free-form and
 * untrusted.
 */
export interface EntryContent {
  readonly spec: unknown;
  readonly status: { readonly outputs: Readonly<Record<string, unknown>> };
}

/** One version of an entry. */
export interface Entry {
  readonly ref: EntryRef;
  readonly resourceVersion: string;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Only the force and abandon annotations. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly mode: Mode;
  readonly suspended: boolean;
  readonly kubeconfigSecretRef: ClusterInventory['spec']['kubeconfigSecretRef'] | undefined;
  /** The user who set `kubeconfigSecretRef`, as the webhook recorded; undefined if the webhook recorded none. */
  readonly kubeconfigSetBy: KubeconfigSetter | undefined;
  /** Names of the components in `spec.components` with `enabled: false`. */
  readonly disabled: ReadonlySet<string>;
  /** Size as `entryBytes` counts it; the limit for runs and writes of users and components is 65,536. */
  readonly bytes: number;
  /** May be another copy at each read, so do not mutate it. */
  readonly content: EntryContent;
  /** `status.components`. */
  readonly components: readonly ComponentStatus[];
  /** `status.conditions`. */
  readonly conditions: readonly Condition[];
}
