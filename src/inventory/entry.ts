import type { ClusterInventory, ComponentStatus, KubeconfigSetter } from '../api/inventory/cluster-inventory.ts';
import type { Mode } from '../api/inventory/fields.ts';
import { abandonAnnotation, abandonedByAnnotation } from '../api/inventory/names.ts';
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
  /** Only the force, abandon, and abandoned-by annotations. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly mode: Mode;
  readonly suspended: boolean;
  readonly kubeconfigSecretRef: ClusterInventory['spec']['kubeconfigSecretRef'] | undefined;
  /** The user who set `kubeconfigSecretRef`, as the webhook recorded; undefined if the webhook recorded none. */
  readonly kubeconfigSetBy: KubeconfigSetter | undefined;
  /** Names of the components in `spec.components` with `enabled: false`. */
  readonly disabled: ReadonlySet<string>;
  /** Names of all components in `spec.components`. */
  readonly named: readonly string[];
  /**
   * Size in bytes, as `entryBytes` counts it. Above 65,536, the server reconciles no component, and rejects writes of users and components
   * that make the entry grow. An entry that is being deleted has no limit.
   */
  readonly bytes: number;
  /** Each read may return another copy, so do not mutate it. */
  readonly content: EntryContent;
  /** `status.components`. */
  readonly components: readonly ComponentStatus[];
  /** `status.waitingFor`. */
  readonly waitingFor: string | undefined;
  /** `status.conditions`. */
  readonly conditions: readonly Condition[];
}

type Annotated = Pick<Entry, 'annotations'>;

/**
 * Whether a user abandoned the component for this entry: the server no longer runs it, and does not wait for its teardown. For an entry
 * that is not being deleted, the webhook must have recorded the user: earlier versions ignored the annotation on such entries, so an old
 * annotation has no effect after an upgrade.
 */
export const isAbandoned = (
  { annotations, deleting }: Annotated & Pick<Entry, 'deleting'>,
  component: string,
): boolean =>
  Object.hasOwn(annotations, abandonAnnotation(component)) &&
  (deleting || Object.hasOwn(annotations, abandonedByAnnotation(component)));

/** Whether the entry has the abandon annotation of the component, and the annotation has no effect: no user is recorded. */
export const hasUnrecordedAbandonment = (entry: Annotated & Pick<Entry, 'deleting'>, component: string): boolean =>
  Object.hasOwn(entry.annotations, abandonAnnotation(component)) && !isAbandoned(entry, component);

/**
 * Who abandoned a component, as the webhook recorded, and why. `user` is undefined if the webhook recorded none; `reason` is empty if the
 * user gave none.
 */
export const abandonmentOf = ({ annotations }: Annotated, component: string) => ({
  user: annotations[abandonedByAnnotation(component)],
  reason: annotations[abandonAnnotation(component)] ?? '',
});

/** The abandonment in words, such as `abandoned by alice: its account is lost`. */
export function abandonmentText(entry: Annotated, component: string): string {
  const { user = 'an unknown user', reason } = abandonmentOf(entry, component);
  return `abandoned by ${user}: ${reason || 'no reason given'}`;
}
