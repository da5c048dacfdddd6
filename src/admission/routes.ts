import { accesses, type RequestKind } from '../api/access/kinds.ts';
import { childNameSuffix, type TemplateKind } from '../api/access/names.ts';
import { accountPrefix, clusterInventories, componentReconcilers } from '../api/inventory/names.ts';
import type { Resource } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { entrySubresources } from '../audit/record.ts';
import type { Operation } from './codec.ts';
import type { Handler } from './decision.ts';
import { attestAuthor } from './handlers/author-attestation.ts';
import { authorizeComponentWrite } from './handlers/component-write-authorization.ts';
import { limitEntry, stampSetter } from './handlers/entry-webhooks.ts';
import { guardAccessPod, observePod } from './handlers/exec-guard.ts';
import { judgeRegistration } from './handlers/registration-validation.ts';
import { validateRequest } from './handlers/request-validation.ts';
import { attestRequester } from './handlers/requester-attestation.ts';
import { validateTemplate } from './handlers/template-validation.ts';
import type { AdmissionPorts, InventoryPorts } from './ports.ts';

/** One webhook, as it is registered and as it is served where its feature runs. */
export type Route = AccessRoute | InventoryRoute;

interface AccessRoute extends Webhook {
  readonly feature: 'access';
  readonly handler: (ports: AdmissionPorts) => Handler;
}

interface InventoryRoute extends Webhook {
  readonly feature: 'inventory';
  readonly handler: (ports: InventoryPorts) => Handler;
}

interface Webhook {
  readonly path: string;
  readonly name: string;
  readonly type: 'mutating' | 'validating';
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
  /** Its reviews come in bursts: they do not pass through express, which costs more than deciding them does. */
  readonly hot?: true;
  /** It never refuses, not even when it fails. */
  readonly onlyWatches?: true;
  /** Only refusals leave an audit line, as with mutating webhooks. Default: every decision does. */
  readonly recordsRefusalsOnly?: true;
}

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

const mutate = (resource: Resource): Webhook & { readonly feature: 'access' } => ({
  path: `/mutate-${groupPath(resource)}-${objectName(resource)}`,
  name: `m${objectName(resource)}.kb.io`,
  type: 'mutating',
  feature: 'access',
  resource,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Fail',
  sideEffects: 'None',
  timeoutSeconds: TIMEOUT_SECONDS,
  matchConditions: notOnItsWayOut,
  // Another webhook may undo the stamp, add finalizers or change a template after us; doing it again changes nothing that is already right.
  reinvocationPolicy: 'IfNeeded',
});

const validate = (resource: Resource): Webhook & { readonly feature: 'access' } => ({
  path: `/validate-${groupPath(resource)}-${objectName(resource)}`,
  name: `v${objectName(resource)}.kb.io`,
  type: 'validating',
  feature: 'access',
  resource,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Fail',
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
});

const requestRoutes = (resource: Resource, kind: RequestKind): readonly AccessRoute[] => [
  { ...mutate(resource), hot: true, handler: (ports) => attestRequester(kind, ports) },
  {
    ...validate(resource),
    hot: true,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: notOnItsWayOut,
    failOpen: ['DELETE'],
    handler: (ports) => validateRequest(kind, ports),
  },
];

const templateRoutes = (resource: Resource, kind: TemplateKind): readonly AccessRoute[] => [
  { ...mutate(resource), handler: (ports) => attestAuthor(kind, ports) },
  { ...validate(resource), handler: (ports) => validateTemplate(kind, ports) },
];

/**
 * By name, because the object of a CONNECT has no metadata that a selector could see. Proxies are asked for as `name`, `name:port` or
 * `scheme:name:port`. The namespaces that a cluster is repaired from are left out: nobody may be kept out of these by our absence.
 */
const isReserved =
  `request.name.matches('^([^:]*${childNameSuffix}(:[^:]*)?|[^:]*:[^:]*${childNameSuffix}:[^:]*)$')` +
  " && !(request.namespace in ['kube-system', 'drawbridge-system'])";

/** Each way into a pod is told to one of the two webhooks, so that it leaves one line. */
const enterPod = {
  type: 'validating',
  feature: 'access',
  resource: pods,
  subresources: entrySubresources,
  // Ephemeral containers are added by an UPDATE of their subresource; all others are a CONNECT.
  operations: ['CONNECT', 'UPDATE'],
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
} as const satisfies Partial<AccessRoute>;

const podRoutes: readonly AccessRoute[] = [
  {
    ...enterPod,
    path: '/watch-v1-pod',
    name: 'vpod.kb.io',
    // A broken webhook must never keep people out of pods.
    failurePolicy: 'Ignore',
    onlyWatches: true,
    matchConditions: [{ name: 'no-access-pod', expression: `!(${isReserved})` }],
    handler: observePod,
  },
  {
    ...enterPod,
    path: '/enforce-v1-pod',
    name: 'enforce.vpod.kb.io',
    failurePolicy: 'Fail',
    matchConditions: [{ name: 'access-pod', expression: isReserved }],
    handler: guardAccessPod,
  },
];

const fromInventory = (
  route: Omit<InventoryRoute, 'feature' | 'sideEffects' | 'timeoutSeconds'> & Partial<InventoryRoute>,
): InventoryRoute => ({
  feature: 'inventory',
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
  ...route,
});

/** Accounts of components, whatever cluster, and nobody else: people never wait for us. */
const byComponent = `request.userInfo.username.matches('^system:serviceaccount:[^:]+:${accountPrefix}')`;

const differs = (field: string): string =>
  `has(object.spec.${field}) != has(oldObject.spec.${field}) || (has(object.spec.${field}) && object.spec.${field} != oldObject.spec.${field})`;

/** Who named the Secret is only of interest when it is named, or somebody says who did. */
const namesSecret =
  "request.operation == 'CREATE'" +
  ' ? has(object.spec) && (has(object.spec.kubeconfigSecretRef) || has(object.spec.kubeconfigSetBy))' +
  ` : ${differs('kubeconfigSecretRef')} || ${differs('kubeconfigSetBy')}`;

const inventoryRoutes: readonly InventoryRoute[] = [
  fromInventory({
    path: `/mutate-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'setter.clusterinventory.inventory.drawbridge.dev',
    type: 'mutating',
    handler: () => stampSetter,
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
    handler: authorizeComponentWrite,
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
    recordsRefusalsOnly: true,
    handler: () => limitEntry,
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
    handler: judgeRegistration,
    resource: componentReconcilers,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    failurePolicy: 'Fail',
  }),
];

/** All webhooks. The server serves this table and `webhooks/` is generated from it. */
export const routes: readonly Route[] = [
  ...accesses.flatMap(({ request: { resource } }) => requestRoutes(resource, resource.kind)),
  ...accesses.flatMap(({ template: { resource } }) => templateRoutes(resource, resource.kind)),
  ...podRoutes,
  ...inventoryRoutes,
];
