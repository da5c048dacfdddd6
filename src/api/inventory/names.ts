import { type JsonPointer, pointerOf } from '../../kit/json-pointer.ts';
import type { Resource } from '../object.ts';

export const inventoryGroup = 'inventory.drawbridge.dev';
const inventoryVersion = 'v1alpha1';

const resource = (plural: string, kind: string, namespaced: boolean): Resource => ({
  group: inventoryGroup,
  version: inventoryVersion,
  plural,
  kind,
  namespaced,
});

/** One per cluster. */
export const clusterInventories = resource('clusterinventories', 'ClusterInventory', true);
/** One per component. */
export const componentReconcilers = resource('componentreconcilers', 'ComponentReconciler', false);
/** One per component of an entry. Each run updates the same record. */
export const reconcileRuns = resource('reconcileruns', 'ReconcileRun', true);

/** On entries, until every component that ran has torn down its resources or was abandoned. */
export const teardownFinalizer = 'inventory.drawbridge.dev/teardown';

/** UID of the entry: on all objects of the entry, and on objects of its components. */
export const entryUidLabel = 'inventory.drawbridge.dev/entry-uid';
/** On run records and ServiceAccounts. */
export const componentLabel = 'inventory.drawbridge.dev/component';

/** Of components, of owners of outputs, and of abandoned components in one entry. */
export const maxComponents = 64;

/** On entries: a new value runs the component as soon as a run may start. */
export const forceAnnotation = (component: string): string => `force.inventory.drawbridge.dev/${component}`;
/**
 * On entries: the reason. Ends runs and the wait for teardown if the webhook recorded the user or
 * the entry is being deleted.
 */
export const abandonAnnotation = (component: string): string => `abandon.inventory.drawbridge.dev/${component}`;
/** Who set the abandon annotation. The webhook overwrites any submitted value. */
export const abandonedByAnnotation = (component: string): string =>
  `abandoned-by.inventory.drawbridge.dev/${component}`;

/** Component names are label values, and parts of annotation and object names. */
export const componentNamePattern = '^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$';

/** Where a component that produces a kubeconfig publishes the reference to its Secret. */
export const kubeconfigOutput: JsonPointer = '/status/outputs/kubeconfig';
export const kubeconfigKey = 'config';
/** In the entry's namespace. The server creates the Secret; the producing component fills it. */
export const kubeconfigSecretName = (entryUid: string): string => `kc-${entryUid}`;

/** The default of `writes` of a registration. */
export const outputsOf = (component: string): JsonPointer => pointerOf('status', 'outputs', component);

/** The API server's limit. */
const maxNameLength = 253;

/** `ENTRY.COMPONENT`, or `UID.COMPONENT` if that would be too long. */
export function runName(entry: { readonly name: string; readonly uid: string }, component: string): string {
  const name = `${entry.name}.${component}`;
  return name.length <= maxNameLength ? name : `${entry.uid}.${component}`;
}

/** In requests and reports: `UID.COMPONENT.SEQ`. */
export const runIdOf = (entryUid: string, component: string, seq: number): string => `${entryUid}.${component}.${seq}`;

/** Of the ServiceAccount of a component for one entry. */
export const accountName = (entryUid: string, component: string): string => `${accountPrefix}${entryUid}.${component}`;
/** Of the ServiceAccounts of components. Other accounts with it may not write the status. */
export const accountPrefix = 'inventory-';

/** In the namespace of the server's Lease; its tokens authenticate calls to components. */
export const managerAccount = 'drawbridge-inventory';
export const callAudience = (component: string): string => `drawbridge/${component}`;

/** In bytes of JSON, as `entryBytes` counts: without managedFields and the server's own status. */
export const maxEntryBytes = 65_536;

/** Condition types of entries. */
export const entryConditions = {
  /**
   * At least one component applies, and all that apply are Done with the current inputs. False
   * during deletion. With reason `TooLarge`, the server starts no run.
   */
  ready: 'Ready',
  /**
   * False while a watch of the managed cluster is unhealthy or closed (too many clusters). Only on
   * entries that ever had remote watches.
   */
  remoteWatchHealthy: 'RemoteWatchHealthy',
  /** True while a component's inputs keep returning to earlier values. */
  livelock: 'Livelock',
} as const;

/** Condition types of registrations. */
export const registrationConditions = {
  /** False if the server cannot use the registration. It then runs the component for no entry. */
  accepted: 'Accepted',
  /** False while the circuit breaker of the endpoint is open. */
  reachable: 'Reachable',
  /** A warning: the component's outputs affect its own inputs through other components. */
  cyclic: 'Cyclic',
} as const;
