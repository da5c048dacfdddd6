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

/** One webhook: its registration in a webhook configuration, and its handler. */
export type Route = AccessRoute | InventoryRoute;

/** A webhook of the access feature. */
interface AccessRoute extends Webhook {
  readonly feature: 'access';
  readonly handler: (ports: AdmissionPorts) => Handler;
}

/** A webhook of the inventory feature. */
interface InventoryRoute extends Webhook {
  readonly feature: 'inventory';
  readonly handler: (ports: InventoryPorts) => Handler;
}

/** What the routes of all features have. */
interface Webhook {
  readonly path: string;
  readonly name: string;
  readonly type: 'mutating' | 'validating';
  readonly resource: Resource;
  /** The subresources that it reviews; the empty string is the object itself. Default: only the object. */
  readonly subresources?: readonly string[];
  readonly operations: readonly Operation[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  /**
   * Operations that `make manifests` registers as a separate webhook with failurePolicy Ignore, so that they work while the server is down.
   * Deleting a request, which revokes access, is one.
   */
  readonly failOpen?: readonly Operation[];
  /**
   * `NoneOnDryRun` for validating webhooks: they write audit lines, and some record Events. On a dry run, they record no Event, and mark
   * the line.
   */
  readonly sideEffects: 'None' | 'NoneOnDryRun';
  /** How long the API server waits for the answer. */
  readonly timeoutSeconds: number;
  /** CEL expressions. The API server calls the webhook only if all are true. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  /** For mutating webhooks only. */
  readonly reinvocationPolicy?: 'Never' | 'IfNeeded';
  /** True if its reviews come in bursts. The server then handles them without express, because express takes longer than the decision. */
  readonly hot?: true;
  /** True if the webhook never denies, even if it fails. */
  readonly observeOnly?: true;
  /** True if the webhook writes audit lines only for denials, as all mutating webhooks do. Default: for every decision. */
  readonly auditsDenialsOnly?: true;
}

const TIMEOUT_SECONDS = 3;

const groupPath = (resource: Resource): string => `${resource.group.replaceAll('.', '-')}-${resource.version}`;
const objectName = (resource: Resource): string => resource.kind.toLowerCase();

/**
 * Excludes updates of an object that is being deleted, so that its finalizer can be removed while the server is down. Such an update cannot
 * open access: the leader grants nothing for a request that is being deleted, and the author's signature does not cover a new spec of a
 * template.
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
  // A later webhook may remove the attestation, add finalizers, or change a template. A second call attests the object again.
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
    handler: (ports) => attestRequester(kind, ports),
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
  { ...mutatingWebhook(resource), matchConditions: notBeingDeleted, handler: (ports) => attestAuthor(kind, ports) },
  { ...validatingWebhook(resource), handler: (ports) => validateTemplate(kind, ports) },
];

/** The webhooks see no updates and deletes of votes: an admission policy denies those of users. */
const voteRoutes: readonly AccessRoute[] = [
  { ...mutatingWebhook(accessVotes), hot: true, operations: ['CREATE'], handler: attestVote },
  { ...validatingWebhook(accessVotes), hot: true, operations: ['CREATE'], handler: validateVote },
];

/**
 * Matches access pods by name, because the object of a CONNECT has no metadata for a selector. A proxy call names the pod as `name`,
 * `name:port`, or `scheme:name:port`. The expression excludes the namespaces whose pods administrators need to repair a cluster: these pods
 * must stay reachable while the server is down.
 */
const isAccessPodName =
  `request.name.matches('^([^:]*${childNameSuffix}(:[^:]*)?|[^:]*:[^:]*${childNameSuffix}:[^:]*)$')` +
  " && !(request.namespace in ['kube-system', 'drawbridge-system'])";

/** Calls of the gateway. The chart replaces the namespace by that of the installation. */
const byGateway = `request.userInfo.username == '${gatewayUserOf('drawbridge-system')}'`;
const notByGateway = { name: 'not-by-gateway', expression: `!(${byGateway})` };

/** The API server sends each call to one of the three pod webhooks, so that it leaves one audit line. */
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
    // This has no exception for the namespaces above: administrators repair a cluster without the gateway.
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

/** Matches only service accounts of components, in any namespace. The API server never sends calls of people to this webhook. */
const byComponent = `request.userInfo.username.matches('^system:serviceaccount:[^:]+:${accountPrefix}')`;

const differs = (field: string): string =>
  `has(object.spec.${field}) != has(oldObject.spec.${field}) || (has(object.spec.${field}) && object.spec.${field} != oldObject.spec.${field})`;

/** Matches writes that set, change, or remove the Secret reference, or the field with the user who set it. */
const namesSecret =
  "request.operation == 'CREATE'" +
  ' ? has(object.spec) && (has(object.spec.kubeconfigSecretRef) || has(object.spec.kubeconfigSetBy))' +
  ` : ${differs('kubeconfigSecretRef')} || ${differs('kubeconfigSetBy')}`;

const annotationsOf = (object: string): string =>
  `(has(${object}.metadata.annotations) ? ${object}.metadata.annotations : {})`;
const annotations = annotationsOf('object');
const annotationsBefore = `(request.operation == 'CREATE' ? {} : ${annotationsOf('oldObject')})`;
const isAbandonment = "k.matches('^abandon(ed-by)?[.]inventory[.]drawbridge[.]dev/')";

/** Matches writes that set, change, or remove the abandonment of a component, or the annotation with the user who set it. */
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
    // While the server is down, nothing checks that a component changes only its own paths, so it may not write.
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
    // Entries stay writable while the server is down. The server starts no run for an entry above the limit.
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

/** All webhooks. The server serves this table, and `make manifests` generates `webhooks/` from it. */
export const routes: readonly Route[] = [
  ...accesses.flatMap(({ request: { resource } }) => requestRoutes(resource, resource.kind)),
  ...accesses.flatMap(({ template: { resource } }) => templateRoutes(resource, resource.kind)),
  ...voteRoutes,
  ...podRoutes,
  ...inventoryRoutes,
];
