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
import { type GrantingTemplate, type Right, rightsToHold } from './policy/template-rights.ts';
import type { Signer } from './signing/signer.ts';
import { type AccessStores, byPod, byUid } from './stores/access-stores.ts';
import { type RequestView, type TemplateView, viewRequest, viewTemplate } from './stores/access-views.ts';
import { type PodView, viewPod } from './stores/cluster-views.ts';

/** The reads of the webhooks that admit requests and templates; implements parts of `AccessReviews`. */
export function admissionReads(stores: AccessStores, client: Client, quota: GrantQuota) {
  return {
    templateState: (kind: TemplateKind, namespace: string, name: string, signal: AbortSignal) =>
      readTemplate(accessOfTemplate(kind), { namespace, name }, stores, client, signal),
    alreadyHolds: (caller: Caller & Extra, namespace: string, template: GrantingTemplate, signal: AbortSignal) =>
      alreadyHolds(client, caller, namespace, template, signal),
    limitUses: (account: Account) => quota.uses(account),
    lacking: (caller: Caller & Extra, namespace: string, rights: readonly Right[], signal: AbortSignal) =>
      lackingRights(client, caller, namespace, rights, signal),
  };
}

/** Reads the store; reads live if the store does not have it, because the store may lag behind the caller's own write. */
async function readTemplate(
  access: Access,
  name: ObjectName,
  stores: AccessStores,
  client: Client,
  signal: AbortSignal,
): Promise<TemplateState> {
  const known = stores.of(access.request.resource.kind).templates.get(keyOf(name));
  if (known) return templateState(known);
  const found = await findObject(client, access.template.resource, name, { signal });
  const read = found && viewTemplate(access)(found);
  return read ? templateState(read) : { found: false };
}

type Found = Extract<TemplateState, { found: true }>;

/** The fields of a template that the rule books need. */
export function templateState(template: TemplateView): Found {
  const failing = template.conditions.find((condition) => condition.status === 'False' && !isSummary(condition));
  const observed = template.conditions.map((condition) => condition.observedGeneration ?? 0);
  return {
    found: true,
    uid: template.uid,
    generation: template.generation,
    spec: template.spec,
    ready: template.ready,
    // Each condition has its own generation; the reconciler has observed the template up to the oldest.
    observedGeneration: observed.length > 0 ? Math.min(...observed) : undefined,
    ...(failing ? { failing: { type: failing.type, reason: failing.reason, message: failing.message } } : {}),
  };
}

interface Extra {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Whether the caller already holds in the namespace everything that the template gives. Then its groups do not matter. */
export async function alreadyHolds(
  client: Client,
  caller: Caller & Extra,
  namespace: string,
  template: GrantingTemplate,
  signal: AbortSignal,
): Promise<boolean> {
  // Nothing is granted by such rules, and a template that is older than the bound may have hundreds of rights to check.
  if (rulesViolation(template.spec.accessConfig.rules)) return false;
  return (await lackingRights(client, caller, namespace, rightsToHold(template), signal)).length === 0;
}

/** The `rights` that the caller lacks in the namespace, by concurrent SubjectAccessReviews. */
export async function lackingRights(
  client: Client,
  caller: Caller & Extra,
  namespace: string,
  rights: readonly Right[],
  signal: AbortSignal,
): Promise<Right[]> {
  const held = await Promise.all(
    rights.map((right) => client.isAllowed(questionOf(caller, namespace, right), { signal })),
  );
  return rights.filter((_, index) => held[index] !== true);
}

function questionOf({ username, uid, groups, extra }: Caller & Extra, namespace: string, right: Right): AccessQuestion {
  return { user: username, uid, groups, namespace, ...right, ...(extra ? { extra } : {}) };
}

interface ConnectTargetsDeps {
  readonly stores: Pick<AccessStores, 'pods' | 'requests' | 'of'>;
  readonly client: Pick<Client, 'get'>;
  readonly signer: Pick<Signer, 'isOurGrant'>;
  readonly clock: Clock;
}

/** What the webhooks that watch and guard pods ask of a pod; fits the ports of admission. */
export function connectTargets({ stores, client, signer, clock }: ConnectTargetsDeps) {
  const isOpen = ({ grant, revoked, deleting }: RequestView): boolean =>
    grant !== undefined && !revoked && !deleting && clock.now() < (parseTime(grant.expiresAt) ?? 0);

  const makers = accesses.filter(({ createsPod }) => createsPod);
  const made = makers.map(({ request }) => stores.of(request.resource.kind).requests);

  /** The request that the pod was created for, from the store. If someone removed our label and annotations, its uid identifies it. */
  const requestOf = (pod: PodView): RequestView | undefined =>
    made
      .flatMap((store) => store.byIndex(byUid, pod.madeFor?.uid ?? ''))
      .find(({ namespace }) => namespace === pod.namespace) ??
    made
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
      const known = requestOf(pod);
      const ours = known !== undefined || pod.madeFor !== undefined;
      // The grant is stored before the pod is created, so if the request has no grant, the store lags behind.
      const request = known?.grant ? known : await liveRequest(pod, signal);
      const proved = request?.grant && isOpen(request) && (await signer.isOurGrant(request, request.grant, signal));
      return { uid: pod.uid, ours, grants: ours && request && proved ? grantOf(request) : [] };
    },
  };

  async function livePod(name: ObjectName, signal: AbortSignal): Promise<PodView | undefined> {
    const found = await findObject(client, pods, name, { signal });
    return found && viewPod(found);
  }

  async function liveRequest({ namespace, madeFor }: PodView, signal: AbortSignal): Promise<RequestView | undefined> {
    const maker = makers.find(({ request }) => request.resource.kind === madeFor?.owner?.kind);
    if (!maker || !madeFor?.owner) return undefined;
    const { resource } = maker.request;
    const found = await findObject(client, resource, { namespace, name: madeFor.owner.name }, { signal });
    const request = found && viewRequest({ ...found, kind: resource.kind });
    return request?.uid === madeFor.uid ? request : undefined;
  }
}

const grantOf = ({ name, grant }: RequestView) => (grant ? [{ request: name, subjects: grant.subjects }] : []);
