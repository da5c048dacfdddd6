import { accessVotes } from '../api/access/access-vote.ts';
import { accesses, type RequestKind } from '../api/access/kinds.ts';
import { childNameSuffix, type TemplateKind } from '../api/access/names.ts';
import { gatewayUserOf } from '../api/gateway/names.ts';
import { accountPrefix, clusterInventories, componentReconcilers } from '../api/inventory/names.ts';
import type { Resource } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { connectSubresources } from '../audit/record.ts';
import type { Operation } from './codec.ts';
import type { Handler } from './decision.ts';
import { attestAuthor } from './handlers/author-attestation.ts';
import { authorizeComponentWrite } from './handlers/component-write-authorization.ts';
import { attestEntry, validateEntry } from './handlers/entry-webhooks.ts';
import { guardAccessPod, guardGateway, observePod } from './handlers/exec-guard.ts';
import { validateRegistration } from './handlers/registration-validation.ts';
import { validateRequest } from './handlers/request-validation.ts';
import { attestRequester } from './handlers/requester-attestation.ts';
import { validateTemplate } from './handlers/template-validation.ts';
import { attestVote } from './handlers/vote-attestation.ts';
import { validateVote } from './handlers/vote-validation.ts';
import type { AdmissionPorts, InventoryPorts } from './ports.ts';

/** One webhook: its registration, and its handler. */
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
  /** The empty string is the object itself. Default: only the object. */
  readonly subresources?: readonly string[];
  readonly operations: readonly Operation[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  /**
   * Registered with failurePolicy Ignore by `make manifests`, so that a request can be deleted
   * (revoked) while the server is down.
   */
  readonly failOpen?: readonly Operation[];
  /** `NoneOnDryRun` for audit lines and Events: a dry run marks the line, and records no Event. */
  readonly sideEffects: 'None' | 'NoneOnDryRun';
  readonly timeoutSeconds: number;
  /** CEL: the API server calls the webhook only if all are true. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** For mutating webhooks only. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
  /** Its reviews come in bursts: without express, which takes longer than the decision. */
  readonly hot?: true;
  /** Never denies, even if it fails. */
  readonly observeOnly?: true;
  /** As all mutating webhooks do. Default: audit lines for every decision. */
  readonly auditsDenialsOnly?: true;
}

const TIMEOUT_SECONDS = 3;

const groupPath = (resource: Resource): string => `${resource.group.replaceAll('.', '-')}-${resource.version}`;
const objectName = (resource: Resource): string => resource.kind.toLowerCase();

/**
 * So that a finalizer can be removed while the server is down. Such an update opens no access: the
 * leader grants nothing, and a policy refuses another author.
 */
const notBeingDeleted = [
  {
    name: 'not-being-deleted',
    expression: "request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp)",
  },
];

const mutatingWebhook = (resource: Resource): Webhook & { readonly feature: 'access' } => ({
  path: `/mutate-${groupPath(resource)}-${objectName(resource)}`,
  name: `m${objectName(resource)}.kb.io`,
  type: 'mutating',
  feature: 'access',
  resource,
  operations: ['CREATE', 'UPDATE'],
  failurePolicy: 'Fail',
  sideEffects: 'None',
  timeoutSeconds: TIMEOUT_SECONDS,
  // A later webhook may remove the attestation, add finalizers, or change a template.
  reinvocationPolicy: 'IfNeeded',
});

const validatingWebhook = (resource: Resource): Webhook & { readonly feature: 'access' } => ({
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
  {
    ...mutatingWebhook(resource),
    hot: true,
    matchConditions: notBeingDeleted,
    handler: attestRequester,
  },
  {
    ...validatingWebhook(resource),
    hot: true,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: notBeingDeleted,
    failOpen: ['DELETE'],
    handler: (ports) => validateRequest(kind, ports),
  },
];

const templateRoutes = (resource: Resource, kind: TemplateKind): readonly AccessRoute[] => [
  { ...mutatingWebhook(resource), matchConditions: notBeingDeleted, handler: attestAuthor },
  { ...validatingWebhook(resource), handler: (ports) => validateTemplate(kind, ports) },
];

/** An admission policy denies users all updates and deletes of votes. */
const voteRoutes: readonly AccessRoute[] = [
  { ...mutatingWebhook(accessVotes), hot: true, operations: ['CREATE'], handler: attestVote },
  { ...validatingWebhook(accessVotes), hot: true, operations: ['CREATE'], handler: validateVote },
];

/**
 * The object of a CONNECT has no metadata, and a proxy call adds scheme and port. Pods that repair
 * a cluster must stay reachable while the server is down.
 */
const isAccessPodName =
  `request.name.matches('^([^:]*${childNameSuffix}(:[^:]*)?|[^:]*:[^:]*${childNameSuffix}:[^:]*)$')` +
  " && !(request.namespace in ['kube-system', 'drawbridge-system'])";

/** The chart replaces the namespace by that of the installation. */
const byGateway = `request.userInfo.username == '${gatewayUserOf('drawbridge-system')}'`;
const notByGateway = { name: 'not-by-gateway', expression: `!(${byGateway})` };

/** Each call goes to one of the three pod webhooks, so that it leaves one audit line. */
const podConnect = {
  type: 'validating',
  feature: 'access',
  resource: pods,
  subresources: connectSubresources,
  // Ephemeral containers are an UPDATE of their subresource; all others are a CONNECT.
  operations: ['CONNECT', 'UPDATE'],
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
} as const satisfies Partial<AccessRoute>;

const podRoutes: readonly AccessRoute[] = [
  {
    ...podConnect,
    path: '/watch-v1-pod',
    name: 'vpod.kb.io',
    // A broken webhook must never block connections to pods.
    failurePolicy: 'Ignore',
    observeOnly: true,
    // A hung server delays each connection to each pod by this time.
    timeoutSeconds: 1,
    matchConditions: [{ name: 'no-access-pod', expression: `!(${isAccessPodName})` }, notByGateway],
    handler: observePod,
  },
  {
    ...podConnect,
    path: '/enforce-v1-pod',
    name: 'enforce.vpod.kb.io',
    failurePolicy: 'Fail',
    matchConditions: [{ name: 'access-pod', expression: isAccessPodName }, notByGateway],
    handler: guardAccessPod,
  },
  {
    ...podConnect,
    path: '/gateway-v1-pod',
    name: 'gateway.vpod.kb.io',
    // No exception for the namespaces above: administrators repair a cluster without the gateway.
    failurePolicy: 'Fail',
    matchConditions: [{ name: 'by-gateway', expression: byGateway }],
    handler: guardGateway,
  },
];

const inventoryRoute = (
  route: Omit<InventoryRoute, 'feature' | 'sideEffects' | 'timeoutSeconds'> & Partial<InventoryRoute>,
): InventoryRoute => ({
  feature: 'inventory',
  sideEffects: 'NoneOnDryRun',
  timeoutSeconds: TIMEOUT_SECONDS,
  ...route,
});

/** Service accounts of components, in any namespace: never calls of people. */
const byComponent = `request.userInfo.username.matches('^system:serviceaccount:[^:]+:${accountPrefix}')`;

const differs = (field: string): string =>
  `has(object.spec.${field}) != has(oldObject.spec.${field}) || (has(object.spec.${field}) && object.spec.${field} != oldObject.spec.${field})`;

/** Sets, changes, or removes the Secret reference, or the field with the user who set it. */
const namesSecret =
  "request.operation == 'CREATE'" +
  ' ? has(object.spec) && (has(object.spec.kubeconfigSecretRef) || has(object.spec.kubeconfigSetBy))' +
  ` : ${differs('kubeconfigSecretRef')} || ${differs('kubeconfigSetBy')}`;

const annotationsOf = (object: string): string =>
  `(has(${object}.metadata.annotations) ? ${object}.metadata.annotations : {})`;
const annotations = annotationsOf('object');
const annotationsBefore = `(request.operation == 'CREATE' ? {} : ${annotationsOf('oldObject')})`;
const isAbandonment = "k.matches('^abandon(ed-by)?[.]inventory[.]drawbridge[.]dev/')";

/** Sets, changes, or removes an abandonment, or the annotation with the user who set it. */
const abandons =
  `${annotations}.exists(k, ${isAbandonment} && !(k in ${annotationsBefore} && ${annotationsBefore}[k] == ${annotations}[k]))` +
  ` || ${annotationsBefore}.exists(k, ${isAbandonment} && !(k in ${annotations}))`;

const inventoryRoutes: readonly InventoryRoute[] = [
  inventoryRoute({
    path: `/mutate-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'setter.clusterinventory.inventory.drawbridge.dev',
    type: 'mutating',
    handler: () => attestEntry,
    resource: clusterInventories,
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    sideEffects: 'None',
    matchConditions: [{ name: 'attested', expression: `(${namesSecret}) || ${abandons}` }],
    // A later webhook may change the Secret reference.
    reinvocationPolicy: 'IfNeeded',
  }),
  inventoryRoute({
    // Installed webhook configurations have this path and this name, so both stay.
    path: `/fence-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'fence.clusterinventory.inventory.drawbridge.dev',
    type: 'validating',
    handler: authorizeComponentWrite,
    resource: clusterInventories,
    subresources: ['status'],
    operations: ['UPDATE'],
    // While the server is down, nothing checks what a component changes, so it may not write.
    failurePolicy: 'Fail',
    matchConditions: [{ name: 'by-component', expression: byComponent }],
  }),
  inventoryRoute({
    path: `/limit-${groupPath(clusterInventories)}-clusterinventory`,
    name: 'size.clusterinventory.inventory.drawbridge.dev',
    type: 'validating',
    auditsDenialsOnly: true,
    handler: validateEntry,
    resource: clusterInventories,
    subresources: ['', 'status'],
    operations: ['CREATE', 'UPDATE'],
    // Entries stay writable while the server is down. It runs nothing for one above the limit.
    failurePolicy: 'Ignore',
  }),
  inventoryRoute({
    path: `/validate-${groupPath(componentReconcilers)}-componentreconciler`,
    name: 'componentreconciler.inventory.drawbridge.dev',
    type: 'validating',
    handler: validateRegistration,
    resource: componentReconcilers,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    failurePolicy: 'Fail',
  }),
];

/** The server serves this table, and `make manifests` generates `webhooks/` from it. */
export const routes: readonly Route[] = [
  ...accesses.flatMap(({ request: { resource } }) => requestRoutes(resource, resource.kind)),
  ...accesses.flatMap(({ template: { resource } }) => templateRoutes(resource, resource.kind)),
  ...voteRoutes,
  ...podRoutes,
  ...inventoryRoutes,
];
