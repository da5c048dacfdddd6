import { type JsonPointer, pointerOf } from '../../kit/json-pointer.ts';
import type { Resource } from '../object.ts';

/** The API group of the inventory. */
export const inventoryGroup = 'inventory.drawbridge.dev';
const inventoryVersion = 'v1alpha1';

const resource = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: inventoryGroup,
  version: inventoryVersion,
  plural,
  kind,
  namespaced,
});

/** Entries, one per cluster. */
export const clusterInventories = resource('clusterinventories', 'ClusterInventory', true);
/** Registrations, one per component. */
export const componentReconcilers = resource('componentreconcilers', 'ComponentReconciler', false);
/** Run records, one per component of an entry. Each run updates the same record. */
export const reconcileRuns = resource('reconcileruns', 'ReconcileRun', true);

/** Finalizer on entries. The server removes it once every component that ran has torn down its resources, or was abandoned. */
export const teardownFinalizer = 'inventory.drawbridge.dev/teardown';

/**
 * Label with the UID of the entry. On its run records, ServiceAccounts, Roles, RoleBindings, and Secrets, and on objects of its components.
 */
export const entryUidLabel = 'inventory.drawbridge.dev/entry-uid';
/** Label with the name of the component, on run records and ServiceAccounts. */
export const componentLabel = 'inventory.drawbridge.dev/component';

/** Maximum number of components, of owners of outputs, and of abandoned components in one entry. */
export const maxComponents = 64;

/**
 * Annotation on entries. If its value changes, the server runs the component as soon as a run may start. While the entry is suspended, for
 * example, no run may start.
 */
export const forceAnnotation = (component: string): string => `force.inventory.drawbridge.dev/${component}`;
/**
 * Annotation on entries. If the webhook recorded its user (`abandonedByAnnotation`), or the entry is being deleted, the server no longer
 * runs the component, and does not wait for its teardown. The value is the reason.
 */
export const abandonAnnotation = (component: string): string => `abandon.inventory.drawbridge.dev/${component}`;
/**
 * Annotation on entries: the user who set the abandon annotation of the component. The webhook writes it, and overwrites any submitted
 * value.
 */
export const abandonedByAnnotation = (component: string): string =>
  `abandoned-by.inventory.drawbridge.dev/${component}`;

/** The pattern of component names, which are label values and parts of annotation names and object names. */
export const componentNamePattern = '^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$';

/** Names of the components that are built into the server: the allowed values of `endpoint.inProcess`. */
export const builtInComponents = ['byoc', 'cluster', 'connectivity-proxy', 'kubeconfig', 'network'] as const;

/** The path under which a component that produces a kubeconfig publishes the reference to its Secret. */
export const kubeconfigOutput: JsonPointer = '/status/outputs/kubeconfig';
/** Key of the kubeconfig in its Secret. */
export const kubeconfigKey = 'config';
/** Name of the Secret in the entry's namespace that holds its kubeconfig. The server creates it, and the producing component fills it. */
export const kubeconfigSecretName = (entryUid: string): string => `kc-${entryUid}`;

/** Default for `writes` of a registration: `/status/outputs/COMPONENT`. */
export const outputsOf = (component: string): JsonPointer => pointerOf('status', 'outputs', component);

/** Maximum length of the name of an object, characters. */
const maxNameLength = 253;

/** Name of the run record of one component of one entry: `ENTRY.COMPONENT`, or `UID.COMPONENT` if that name would be too long. */
export function runName(entry: { readonly name: string; readonly uid: string }, component: string): string {
  const name = `${entry.name}.${component}`;
  return name.length <= maxNameLength ? name : `${entry.uid}.${component}`;
}

/** ID of one run, as requests and reports use it: `UID.COMPONENT.SEQ`. */
export const runIdOf = (entryUid: string, component: string, seq: number): string => `${entryUid}.${component}.${seq}`;

/** Name of the ServiceAccount of a component for one entry: `inventory-UID.COMPONENT`. */
export const accountName = (entryUid: string, component: string): string => `${accountPrefix}${entryUid}.${component}`;
/**
 * Name prefix of the ServiceAccounts of components, and of the account with which `DryRunProof` checks that the webhook denies writes
 * without a run. The webhook denies status writes of other accounts with this prefix.
 */
export const accountPrefix = 'inventory-';

/** ServiceAccount, in the namespace of the leader election Lease, whose tokens authenticate calls to components. */
export const managerAccount = 'drawbridge-inventory';
/** Audience of the token for a call to the component. */
export const callAudience = (component: string): string => `drawbridge/${component}`;

/**
 * Maximum size of an entry, in bytes of its JSON without managedFields and without the parts of the status that only the server writes.
 * `entryBytes` counts them.
 */
export const maxEntryBytes = 65_536;

/** Condition types of entries. */
export const entryConditions = {
  /**
   * True if at least one component applies, and every applicable component is Done with the current inputs. False while the entry is being
   * deleted. With reason `TooLarge`, the server starts no run.
   */
  ready: 'Ready',
  /**
   * False while a watch of the managed cluster is unhealthy, or is closed because the server watches too many clusters. Absent if the entry
   * never had remote watches. Keeps its value if the entry no longer has any.
   */
  remoteWatchHealthy: 'RemoteWatchHealthy',
  /** True if the inputs of a component repeatedly returned to earlier values. It stays True until a later run finds that they no longer do. */
  livelock: 'Livelock',
} as const;

/** Condition types of registrations. */
export const registrationConditions = {
  /**
   * False if the server cannot use the registration, for example because it breaks a rule that the webhook did not enforce. The server then
   * runs the component for no entry.
   */
  accepted: 'Accepted',
  /** False while the circuit breaker of the endpoint is open. */
  reachable: 'Reachable',
  /** True, as a warning, if the component's outputs affect its own inputs through other components. */
  cyclic: 'Cyclic',
} as const;
