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

/** The entries, one a cluster. */
export const clusterInventories = resource('clusterinventories', 'ClusterInventory', true);
/** The registrations, one a component. */
export const componentReconcilers = resource('componentreconcilers', 'ComponentReconciler', false);
/** The record of an entry's component, reused by each of its runs. */
export const reconcileRuns = resource('reconcileruns', 'ReconcileRun', true);

/** On entries, until every component has torn down what it made. */
export const teardownFinalizer = 'inventory.drawbridge.dev/teardown';

/** On runs, accounts, roles and Secrets of an entry; on custom resources that a component makes for it: the uid of the entry. */
export const entryUidLabel = 'inventory.drawbridge.dev/entry-uid';
/** On runs and accounts: the name of the component. */
export const componentLabel = 'inventory.drawbridge.dev/component';

/** On entries: any new value runs the component at once. */
export const forceAnnotation = (component: string): string => `force.inventory.drawbridge.dev/${component}`;
/** On entries that are being deleted, with a reason as its value: nobody waits for the component's teardown any more. */
export const abandonAnnotation = (component: string): string => `abandon.inventory.drawbridge.dev/${component}`;

/** Names of components are labels of names, names of annotations and parts of object names. */
export const componentNamePattern = '^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$';

/** What components that produce a kubeconfig publish under, whichever they are. */
export const kubeconfigOutput: JsonPointer = '/status/outputs/kubeconfig';
/** The key in the Secret of a kubeconfig. */
export const kubeconfigKey = 'config';
/** The Secret in the entry's namespace that holds its kubeconfig: made by us, filled by its producer. */
export const kubeconfigSecretName = (entryUid: string): string => `kc-${entryUid}`;

/** Where a component writes if its registration does not say otherwise. */
export const outputsOf = (component: string): JsonPointer => pointerOf('status', 'outputs', component);

/** Name of the record of one component of one entry. */
export const runName = (entryUid: string, component: string): string => `${entryUid}.${component}`;

/** One run of a component, as components give it back. */
export const runIdOf = (entryUid: string, component: string, seq: number): string => `${entryUid}.${component}.${seq}`;

/** Name of the ServiceAccount that a component has for one entry. */
export const accountName = (entryUid: string, component: string): string => `${accountPrefix}${entryUid}.${component}`;
/** Accounts of components, and none but theirs, have names that begin with this. */
export const accountPrefix = 'inventory-';

/** The ServiceAccount, in the namespace of the lease, that calls to components prove to come from. */
export const managerAccount = 'drawbridge-inventory';
/** The audience of the token of such a call. */
export const callAudience = (component: string): string => `drawbridge/${component}`;

/** Largest entry, in bytes of its JSON without managedFields. */
export const maxEntryBytes = 65_536;

/** Of entries. */
export const entryConditions = {
  /** Every component that applies is Done with the inputs of now. Reason `TooLarge`: nothing is run. */
  ready: 'Ready',
  /** False when a watch in the managed cluster is not to be relied on. */
  remoteWatchHealthy: 'RemoteWatchHealthy',
  /** True while a component's inputs go round in circles; the message names it and the path. */
  livelock: 'Livelock',
} as const;

/** Of registrations. */
export const registrationConditions = {
  /** False when the registration breaks a rule that the webhook missed: nothing is run. */
  accepted: 'Accepted',
  /** False while the circuit breaker of the endpoint is open. */
  reachable: 'Reachable',
  /** True, as a warning, when it reads what itself depends on through others. */
  cyclic: 'Cyclic',
} as const;
