import { execAccessRequests, execAccessTemplates } from '../api/access/exec-access.ts';
import { childNameSuffix } from '../api/access/names.ts';
import { podAccessRequests, podAccessTemplates } from '../api/access/pod-access.ts';
import { accountPrefix, clusterInventories, componentReconcilers } from '../api/inventory/names.ts';
import type { Resource } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { waysIn } from '../audit/record.ts';
import type { Operation } from './codec.ts';

/** One webhook, as it is registered and as it is served. */
export interface Route {
  readonly path: string;
  readonly name: string;
  readonly type: 'mutating' | 'validating';
  /** Served, and to be registered, where this half runs. */
  readonly feature: 'access' | 'inventory';
  readonly does: AccessTask | InventoryTask;
  readonly resource: Resource;
  /** Instead of the object itself; the empty one is the object. */
  readonly subresources?: readonly string[];
  readonly operations: readonly Operation[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  /** Operations that are registered apart, with failurePolicy Ignore: what gives access back must not depend on us. */
  readonly failOpen?: readonly Operation[];
  /** `NoneOnDryRun` where an audit line, marked as dry run, or an Event is written. */
  readonly sideEffects: 'None' | 'NoneOnDryRun';
  /** The apiserver waits this long. */
  readonly timeoutSeconds: number;
  /** CEL; all must hold for the webhook to be called. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** Mutating only. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
}

export type AccessTask =
  | 'stampRequest'
  | 'validateRequest'
  | 'stampAuthor'
  | 'validateTemplate'
  | 'watchPod'
  | 'guardPod';
export type InventoryTask = 'fenceComponent' | 'limitEntry' | 'judgeRegistration' | 'stampSetter';

const TIMEOUT_SECONDS = 3;

const groupPath = (resource: Resource): string => `${resource.group.replaceAll('.', '-')}-${resource.version}`;
const objectName = (resource: Resource): string => resource.kind.toLowerCase();

/** A request that is being deleted can be let go of without us: nothing in its spec can change any more. */
const notOnItsWayOut = [
  {
    name: 'not-on-its-way-out',
    expression: "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)",
  },
];

const stamp = (resource: Resource, does: 'stampRequest' | 'stampAuthor'): Route => ({
  path: `/mutate-${groupPath(resource)}-${objectName(resource)}`,
  name: `m${objectName(resource)}.kb.io`,
  type: 'mutating',
  feature: 'access',
  does,
  resource,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Fail',
  sideEffects: 'None',
  timeoutSeconds: TIMEOUT_SECONDS,
  matchConditions: notOnItsWayOut,
  // Another webhook may undo the stamp, add finalizers or change a template after us; doing it again changes nothing that is already right.
  reinvocationPolicy: 'IfNeeded',
});

const validate = (
  resource: Resource,
  does: 'validateRequest' | 'validateTemplate',
  operations: readonly Operation[],
): Route => ({
  path: `/validate-${groupPath(resource)}-${objectName(resource)}`,
  name: `v${objectName(resource)}.kb.io`,
  type: 'validating',
  feature: 'access',
  does,
  resource,
  operations,
  failurePolicy: 'Fail',
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
  ...(does === 'validateRequest' ? { matchConditions: notOnItsWayOut, failOpen: ['DELETE'] } : {}),
});

/**
 * By name, because the object of a CONNECT has no metadata that a selector could see. Proxies are asked for as `name`, `name:port` or
 * `scheme:name:port`. The namespaces that a cluster is repaired from are left out: nobody may be kept out of these by our absence.
 */
const isReserved =
  `request.name.matches('^([^:]*${childNameSuffix}(:[^:]*)?|[^:]*:[^:]*${childNameSuffix}:[^:]*)$')` +
  " && !(request.namespace in ['kube-system', 'drawbridge-system'])";

/** Each way into a pod is told to one of the two webhooks, so that it leaves one line. */
const enter = (
  verb: 'watch' | 'enforce',
  name: string,
  failurePolicy: Route['failurePolicy'],
  expression: string,
): Route => ({
  path: `/${verb}-v1-pod`,
  name,
  type: 'validating',
  feature: 'access',
  does: verb === 'watch' ? 'watchPod' : 'guardPod',
  resource: pods,
  subresources: waysIn,
  // Ephemeral containers are added by an UPDATE of their subresource; all others are a CONNECT.
  operations: ['CONNECT', 'UPDATE'],
  failurePolicy,
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
  matchConditions: [{ name: verb === 'watch' ? 'no-access-pod' : 'access-pod', expression }],
});

const fromInventory = (
  route: Pick<Route, 'path' | 'name' | 'type' | 'does' | 'resource' | 'operations' | 'failurePolicy'> & Partial<Route>,
): Route => ({ feature: 'inventory', sideEffects: 'NoneOnDryRun', timeoutSeconds: TIMEOUT_SECONDS, ...route });

/** Accounts of components, whatever cluster, and nobody else: people never wait for us. */
const byComponent = `request.userInfo.username.matches('^system:serviceaccount:[^:]+:${accountPrefix}')`;

const differs = (field: string): string =>
  `has(object.spec.${field}) != has(oldObject.spec.${field}) || (has(object.spec.${field}) && object.spec.${field} != oldObject.spec.${field})`;

/** Who named the Secret is only of interest when it is named, or somebody says who did. */
const namesSecret =
  "request.operation == 'CREATE'" +
  ' ? has(object.spec) && (has(object.spec.kubeconfigSecretRef) || has(object.spec.kubeconfigSetBy))' +
  ` : ${differs('kubeconfigSecretRef')} || ${differs('kubeconfigSetBy')}`;

const inventoryRoutes: readonly Route[] = [
  fromInventory({
    path: `/mutate-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'setter.clusterinventory.inventory.drawbridge.dev',
    type: 'mutating',
    does: 'stampSetter',
    resource: clusterInventories,
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    sideEffects: 'None',
    matchConditions: [{ name: 'names-kubeconfig-secret', expression: namesSecret }],
    // Another webhook may name another Secret after us.
    reinvocationPolicy: 'IfNeeded',
  }),
  fromInventory({
    path: `/fence-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'fence.clusterinventory.inventory.drawbridge.dev',
    type: 'validating',
    does: 'fenceComponent',
    resource: clusterInventories,
    subresources: ['status'],
    operations: ['UPDATE'],
    // Without us no run is on, so nobody has a business to write.
    failurePolicy: 'Fail',
    matchConditions: [{ name: 'by-component', expression: byComponent }],
  }),
  fromInventory({
    path: `/limit-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'size.clusterinventory.inventory.drawbridge.dev',
    type: 'validating',
    does: 'limitEntry',
    resource: clusterInventories,
    subresources: ['', 'status'],
    operations: ['CREATE', 'UPDATE'],
    // Nobody is kept from an entry by our absence; nothing is run for one that got too large meanwhile.
    failurePolicy: 'Ignore',
  }),
  fromInventory({
    path: `/validate-${groupPath(componentReconcilers)}-componentreconciler`,
    name: 'componentreconciler.inventory.drawbridge.dev',
    type: 'validating',
    does: 'judgeRegistration',
    resource: componentReconcilers,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    failurePolicy: 'Fail',
  }),
];

/** All webhooks. The server serves this table and `webhooks/` is generated from it. */
export const routes: readonly Route[] = [
  stamp(podAccessRequests, 'stampRequest'),
  validate(podAccessRequests, 'validateRequest', ['CREATE', 'UPDATE', 'DELETE']),
  stamp(execAccessRequests, 'stampRequest'),
  validate(execAccessRequests, 'validateRequest', ['CREATE', 'UPDATE', 'DELETE']),
  stamp(podAccessTemplates, 'stampAuthor'),
  validate(podAccessTemplates, 'validateTemplate', ['CREATE', 'UPDATE']),
  stamp(execAccessTemplates, 'stampAuthor'),
  validate(execAccessTemplates, 'validateTemplate', ['CREATE', 'UPDATE']),
  // They only watch: a broken webhook must never keep people out of pods.
  enter('watch', 'vpod.kb.io', 'Ignore', `!(${isReserved})`),
  enter('enforce', 'enforce.vpod.kb.io', 'Fail', isReserved),
  ...inventoryRoutes,
];
