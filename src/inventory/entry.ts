import type { ClusterInventory, ComponentStatus, KubeconfigSetter } from '../api/inventory/cluster-inventory.ts';
import type { Mode } from '../api/inventory/fields.ts';
import { abandonAnnotation, abandonedByAnnotation } from '../api/inventory/names.ts';
import type { Condition, ObjectName } from '../api/object.ts';

/** Identifies an entry. The UID tells it from a later one with the same name. */
export interface EntryRef extends Required<ObjectName> {
  readonly uid: string;
}

/** JSON pointers refer to this. `spec.cluster`, `config`, and `outputs` are untrusted. */
export interface EntryContent {
  readonly spec: unknown;
  readonly status: { readonly outputs: Readonly<Record<string, unknown>> };
}

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
  /** Who set `kubeconfigSecretRef`, as the webhook recorded. */
  readonly kubeconfigSetBy: KubeconfigSetter | undefined;
  readonly disabled: ReadonlySet<string>;
  readonly named: readonly string[];
  /** As `entryBytes` counts. Above 65,536 it may not grow, and only its teardown runs. */
  readonly bytes: number;
  /** Each read may return another copy, so do not mutate it. */
  readonly content: EntryContent;
  readonly components: readonly ComponentStatus[];
  readonly waitingFor: string | undefined;
  readonly conditions: readonly Condition[];
}

type Annotated = Pick<Entry, 'annotations'>;

/**
 * Whether a user abandoned the component for this entry: it no longer runs, and no teardown is
 * awaited. Before the deletion, an annotation without a recorded user has no effect.
 */
export const isAbandoned = (
  { annotations, deleting }: Annotated & Pick<Entry, 'deleting'>,
  component: string,
): boolean =>
  Object.hasOwn(annotations, abandonAnnotation(component)) &&
  (deleting || Object.hasOwn(annotations, abandonedByAnnotation(component)));

/** Whether an abandon annotation has no effect because the webhook recorded no user. */
export const hasUnrecordedAbandonment = (entry: Annotated & Pick<Entry, 'deleting'>, component: string): boolean =>
  Object.hasOwn(entry.annotations, abandonAnnotation(component)) && !isAbandoned(entry, component);

/** Who abandoned a component, as the webhook recorded, and why. */
export const abandonmentOf = ({ annotations }: Annotated, component: string) => ({
  user: annotations[abandonedByAnnotation(component)],
  reason: annotations[abandonAnnotation(component)] ?? '',
});

/** Such as `abandoned by alice: its account is lost`. */
export function abandonmentText(entry: Annotated, component: string): string {
  const { user = 'an unknown user', reason } = abandonmentOf(entry, component);
  return `abandoned by ${user}: ${reason || 'no reason given'}`;
}
