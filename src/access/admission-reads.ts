import { type Access, accesses, accessOfTemplate } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
import { keyOf, type ObjectName } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { type Clock, parseTime } from '../kit/clock.ts';
import { type AccessQuestion, type Client, findObject } from '../kube/client.ts';
import { isSummary } from './conditions.ts';
import type { GrantQuota } from './lifecycle/grant-quota.ts';
import { rulesViolation } from './policy/granted-rules.ts';
import type { Account } from './policy/limits.ts';
import type { Caller, TemplateState } from './policy/request-policy.ts';
import { type GrantingTemplate, type Permission, permissionsToHold } from './policy/template-permissions.ts';
import type { Signer } from './signing/signer.ts';
import { type AccessStores, byPod, byUid } from './stores/access-stores.ts';
import { type RequestView, type TemplateView, viewRequest, viewTemplate } from './stores/access-views.ts';
import { type PodView, viewPod } from './stores/cluster-views.ts';

/** The reads for the webhooks that admit requests and templates. Implements a part of `AccessReviews`. */
export function admissionReads(stores: AccessStores, client: Client, quota: GrantQuota) {
  return {
    templateState: (kind: TemplateKind, namespace: string, name: string, signal: AbortSignal) =>
      readTemplate(accessOfTemplate(kind), { namespace, name }, stores, client, signal),
    alreadyHolds: (caller: Caller & WithExtra, namespace: string, template: GrantingTemplate, signal: AbortSignal) =>
      alreadyHolds(client, caller, namespace, template, signal),
    limitUses: (account: Account) => quota.uses(account),
    missingPermissions: (
      caller: Caller & WithExtra,
      namespace: string,
      permissions: readonly Permission[],
      signal: AbortSignal,
    ) => lackingPermissions(client, caller, namespace, permissions, signal),
  };
}

/**
 * Reads the store. If the template is missing there, reads live, because the store may lag behind the caller's own write. A template that
 * violates its schema counts as not found. Rejects as the client does.
 */
async function readTemplate(
  access: Access,
  name: ObjectName,
  stores: AccessStores,
  client: Client,
  signal: AbortSignal,
): Promise<TemplateState> {
  const cached = stores.of(access.request.resource.kind).templates.get(keyOf(name));
  if (cached) return templateState(cached);
  const object = await findObject(client, access.template.resource, name, { signal });
  const template = object && viewTemplate(access)(object);
  return template ? templateState(template) : { found: false };
}

type FoundTemplate = Extract<TemplateState, { found: true }>;

/** The state of a template that the rule books check. */
export function templateState(template: TemplateView): FoundTemplate {
  const failing = template.conditions.find((condition) => condition.status === 'False' && !isSummary(condition));
  const generations = template.conditions.map((condition) => condition.observedGeneration ?? 0);
  return {
    found: true,
    uid: template.uid,
    generation: template.generation,
    spec: template.spec,
    ready: template.ready,
    // Each condition has its own generation. The lowest is the generation that all conditions have observed.
    observedGeneration: generations.length > 0 ? Math.min(...generations) : undefined,
    ...(failing ? { failing: { type: failing.type, reason: failing.reason, message: failing.message } } : {}),
  };
}

/** The extra fields of an authenticated user. */
interface WithExtra {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Whether the caller already holds `permissionsToHold(template)` in the namespace, and so needs none of its groups. False if the rules of
 * the template are invalid. Rejects as the client does.
 */
export async function alreadyHolds(
  client: Client,
  caller: Caller & WithExtra,
  namespace: string,
  template: GrantingTemplate,
  signal: AbortSignal,
): Promise<boolean> {
  // The server never grants such rules. A template that predates the bound may have hundreds of permissions to check.
  if (rulesViolation(template.spec.accessConfig.rules)) return false;
  return (await lackingPermissions(client, caller, namespace, permissionsToHold(template), signal)).length === 0;
}

/** The permissions that the caller lacks in the namespace, by one SubjectAccessReview each, all at once. Rejects as the client does. */
export async function lackingPermissions(
  client: Client,
  caller: Caller & WithExtra,
  namespace: string,
  permissions: readonly Permission[],
  signal: AbortSignal,
): Promise<Permission[]> {
  const held = await Promise.all(
    permissions.map((permission) => client.isAllowed(questionOf(caller, namespace, permission), { signal })),
  );
  return permissions.filter((_, index) => held[index] !== true);
}

function questionOf(
  { username, uid, groups, extra }: Caller & WithExtra,
  namespace: string,
  permission: Permission,
): AccessQuestion {
  return { user: username, uid, groups, namespace, ...permission, ...(extra ? { extra } : {}) };
}

interface ConnectTargetsDeps {
  readonly stores: Pick<AccessStores, 'pods' | 'requests' | 'of'>;
  readonly client: Pick<Client, 'get'>;
  readonly signer: Pick<Signer, 'isOurGrant'>;
  readonly clock: Clock;
}

/** The reads of pods and their grants for the webhooks that audit and authorize connects. Implements a part of `AccessReviews`. */
export function connectTargets({ stores, client, signer, clock }: ConnectTargetsDeps) {
  const isOpen = ({ grant, revoked, deleting }: RequestView): boolean =>
    grant !== undefined && !revoked && !deleting && clock.now() < (parseTime(grant.expiresAt) ?? 0);

  const podCreators = accesses.filter(({ createsPod }) => createsPod);
  const podRequests = podCreators.map(({ request }) => stores.of(request.resource.kind).requests);

  /** The stored request that the pod was created for. If a client changed our metadata of the pod, the pod's uid identifies the request. */
  const requestOf = (pod: PodView): RequestView | undefined =>
    podRequests
      .flatMap((store) => store.byIndex(byUid, pod.requestRef?.uid ?? ''))
      .find(({ namespace }) => namespace === pod.namespace) ??
    podRequests
      .flatMap((store) => store.byIndex(byPod, pod.key))
      .find(({ children }) => children.some(({ uid }) => uid === pod.uid));

  return {
    cachedConnectTarget(namespace: string, name: string) {
      const key = keyOf({ namespace, name });
      const pod = stores.pods.get(key);
      if (!pod) return undefined;
      const requests = stores.requests.flatMap((store) => store.byIndex(byPod, key));
      return { uid: pod.uid, ours: requestOf(pod) !== undefined, grants: requests.filter(isOpen).flatMap(grantOf) };
    },

    async connectTarget(namespace: string, name: string, signal: AbortSignal) {
      const pod = stores.pods.get(keyOf({ namespace, name })) ?? (await livePod({ namespace, name }, signal));
      if (!pod) return undefined;
      const cached = requestOf(pod);
      const ours = cached !== undefined || pod.requestRef !== undefined;
      // The server stores the grant before it creates the pod, so if the store has no request with a grant, it may lag behind.
      const request = cached?.grant ? cached : await liveRequest(pod, signal);
      const isProven = request?.grant && isOpen(request) && (await signer.isOurGrant(request, request.grant, signal));
      return { uid: pod.uid, ours, grants: ours && request && isProven ? grantOf(request) : [] };
    },
  };

  async function livePod(name: ObjectName, signal: AbortSignal): Promise<PodView | undefined> {
    const found = await findObject(client, pods, name, { signal });
    return found && viewPod(found);
  }

  async function liveRequest(
    { namespace, requestRef }: PodView,
    signal: AbortSignal,
  ): Promise<RequestView | undefined> {
    const access = podCreators.find(({ request }) => request.resource.kind === requestRef?.owner?.kind);
    if (!access || !requestRef?.owner) return undefined;
    const { resource } = access.request;
    const found = await findObject(client, resource, { namespace, name: requestRef.owner.name }, { signal });
    const request = found && viewRequest({ ...found, kind: resource.kind });
    return request?.uid === requestRef.uid ? request : undefined;
  }
}

const grantOf = ({ name, grant }: RequestView) => (grant ? [{ request: name, subjects: grant.subjects }] : []);
