import type { VoteSpec } from '../api/access/access-vote.ts';
import type { Ended } from '../api/access/ended.ts';
import { type Access, accesses, accessOfRequest, accessOfTemplate, type RequestKind } from '../api/access/kinds.ts';
import { gatewayCondition, requestConditions, type TemplateKind, templateConditions } from '../api/access/names.ts';
import { type Condition, type KubeObject, keyOf, type ObjectName } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import type { Clock } from '../kit/clock.ts';
import { isRecord } from '../kit/json-value.ts';
import { SharedCalls } from '../kit/shared-calls.ts';
import { type AccessQuestion, type Client, findObject } from '../kube/client.ts';
import { StoreWaits } from '../kube/store-waits.ts';
import { allTrue, isSummary } from './conditions.ts';
import { type OwedReviews, votedReview } from './emergency/owed-reviews.ts';
import type { GrantQuota } from './lifecycle/grant-quota.ts';
import { extendableOf } from './lifecycle/request-ends.ts';
import type { Extendable } from './policy/extension-choice.ts';
import { rulesViolations } from './policy/granted-rules.ts';
import type { Account } from './policy/limits.ts';
import type { Caller, TemplateState } from './policy/request-policy.ts';
import { type GrantingTemplate, type Permission, permissionsToHold } from './policy/template-permissions.ts';
import type { VotedRequest } from './policy/vote-policy.ts';
import { type AccessStores, byPod, byUid } from './stores/access-stores.ts';
import { accessEndMs, type RequestView, type TemplateView, viewRequest, viewTemplate } from './stores/access-views.ts';
import { type PodView, viewPod } from './stores/cluster-views.ts';

/** For the webhooks that admit requests, votes, and templates. A part of `AccessReviews`. */
export function admissionReads({ stores, client, quota, reviews, clock }: AdmissionReadsDeps) {
  const approvePermission = new ApprovePermission(client);
  return {
    templateState: (kind: TemplateKind, namespace: string, name: string, signal: AbortSignal) =>
      readTemplate(accessOfTemplate(kind), { namespace, name }, stores, client, signal),
    alreadyHolds: (caller: Caller & WithExtra, namespace: string, template: GrantingTemplate, signal: AbortSignal) =>
      alreadyHolds(client, caller, namespace, template, signal),
    limitUses: (account: Account) => quota.uses(account),
    openAccess: (kind: RequestKind, request: unknown): Extendable | undefined => {
      const view = isRecord(request) ? viewRequest({ ...(request as unknown as KubeObject), kind }) : undefined;
      return view && isOpen(view, clock) ? extendableOf(view, stores.pods) : undefined;
    },
    endOf: (kind: RequestKind, request: unknown): Ended | undefined => {
      const view = isRecord(request) ? viewRequest({ ...(request as unknown as KubeObject), kind }) : undefined;
      return view?.ended;
    },
    overdueReview: (user: Caller, namespace: string, templateKind: TemplateKind, template: string) =>
      reviews.overdueOf({ user, namespace, templateKind, template }),
    votedRequest: async (
      { kind, name, uid }: VoteSpec['request'],
      namespace: string,
      signal: AbortSignal,
    ): Promise<VotedRequest> => {
      const found = await readVotedRequest(accessOfRequest(kind), { namespace, name }, stores, client, signal);
      if (found.found && (uid === undefined || uid === found.uid)) return found;
      const review = reviews.find(kind, { namespace, name }, uid);
      return review ? votedReview(review) : found;
    },
    votedAtMs: (name: ObjectName, username: string): number | undefined => {
      const vote = stores.votes.get(keyOf(name));
      return vote?.spec.voter?.username === username ? vote.createdAtMs : undefined;
    },
    mayApprove: (caller: Caller & WithExtra, template: NamedTemplate, signal: AbortSignal) =>
      approvePermission.mayApprove(caller, template, signal),
    missingPermissions: (
      caller: Caller & WithExtra,
      namespace: string,
      permissions: readonly Permission[],
      signal: AbortSignal,
    ) => lackingPermissions(client, caller, namespace, permissions, signal),
  };
}

interface AdmissionReadsDeps {
  readonly stores: AccessStores;
  readonly client: Client;
  readonly quota: GrantQuota;
  readonly reviews: OwedReviews;
  readonly clock: Clock;
}

/** The store, else live, because it may lag behind. A template against its schema is not found. */
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
  if (template) return templateState(template);
  const other = accesses.find(({ request }) => stores.of(request.resource.kind).templates.get(keyOf(name)));
  return { found: false, ...(other && { otherKind: other.template.resource.kind }) };
}

/** The store, else a live read: it may lag behind the creation of the request. */
async function readVotedRequest(
  access: Access,
  name: ObjectName,
  stores: AccessStores,
  client: Client,
  signal: AbortSignal,
): Promise<VotedRequest> {
  const { resource } = access.request;
  const cached = stores.of(resource.kind).requests.get(keyOf(name));
  const object = cached ? undefined : await findObject(client, resource, name, { signal });
  const request = cached ?? (object && viewRequest(object));
  if (!request) {
    const other = accesses.find((each) => stores.of(each.request.resource.kind).requests.get(keyOf(name)));
    return { found: false, ...(other && { otherKind: other.request.resource.kind }) };
  }
  // The status is not verified: admission reads it only to deny a vote early.
  return {
    found: true,
    uid: request.uid,
    templateName: request.spec.templateName,
    requester: request.spec.requester,
    emergency: request.spec.emergency === true,
    ...(request.approval?.state === 'Reviewed' ? { reviewed: true } : {}),
    ...(request.grant ? { isGranted: true } : {}),
    extensions: request.spec.extensions?.length ?? 0,
    decidedExtensions: request.extensions.filter(({ state }) => state !== 'Pending').length,
    ended: request.deleting || request.revoked || request.ended !== undefined,
  };
}

/** A template that may not exist. */
interface NamedTemplate {
  readonly kind: TemplateKind;
  readonly namespace: string;
  readonly name: string;
}

/** Who holds the verb `approve`. Concurrent checks of a person and template share one review. */
export class ApprovePermission {
  readonly #shared: SharedCalls<AccessQuestion, boolean>;

  constructor(client: Client) {
    this.#shared = new SharedCalls(([question], signal) => client.isAllowed(question, { signal }));
  }

  mayApprove(
    { username, uid, groups, extra }: Caller & WithExtra,
    { kind, namespace, name }: NamedTemplate,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { group, plural } = accessOfTemplate(kind).template.resource;
    const asked = { verb: 'approve', group, resource: plural, namespace, name };
    const question = { user: username, uid, groups, ...asked, ...(extra ? { extra } : {}) };
    return this.#shared.ask(JSON.stringify(question), question, signal);
  }
}

type FoundTemplate = Extract<TemplateState, { found: true }>;

const { accessPlanValid, ...otherConditions } = templateConditions;

/** GatewayAvailable counts if it is present. */
const typesFor = (conditions: readonly Condition[]): string[] => [
  ...Object.values(otherConditions),
  ...(conditions.some(({ type }) => type === gatewayCondition) ? [gatewayCondition] : []),
];

/**
 * A False AccessPlanValid does not make a template unready: the leader plans each request again,
 * with the objects that exist then.
 */
export function templateState(template: TemplateView): FoundTemplate {
  const others = template.conditions.filter(({ type }) => type !== accessPlanValid);
  const failing = others.find((condition) => condition.status === 'False' && !isSummary(condition));
  const plan = template.conditions.find(({ type }) => type === accessPlanValid);
  const isUnplannable = plan?.status === 'False' && plan.observedGeneration === template.generation;
  const generations = template.conditions.map((condition) => condition.observedGeneration ?? 0);
  return {
    found: true,
    uid: template.uid,
    generation: template.generation,
    spec: template.spec,
    ready: template.ready === false ? allTrue(others, typesFor(others)) : template.ready,
    // Conditions have their own generations: the lowest is what all have observed.
    observedGeneration: generations.length > 0 ? Math.min(...generations) : undefined,
    ...(failing ? { failing: { type: failing.type, reason: failing.reason, message: failing.message } } : {}),
    ...(isUnplannable ? { unplannable: { code: plan.reason, message: plan.message } } : {}),
  };
}

interface WithExtra {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Whether the caller holds `permissionsToHold` of the template, by one SubjectAccessReview for
 * each. False if its rules are invalid.
 */
export async function alreadyHolds(
  client: Client,
  caller: Caller & WithExtra,
  namespace: string,
  template: GrantingTemplate,
  signal: AbortSignal,
): Promise<boolean> {
  // The server never grants invalid rules, and an old template may have hundreds of permissions.
  if (rulesViolations(template.spec.accessConfig.rules).length > 0) return false;
  return (await lackingPermissions(client, caller, namespace, permissionsToHold(template), signal)).length === 0;
}

/** One SubjectAccessReview each, all at once. */
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
  readonly clock: Clock;
}

/** A connect of the gateway waits this long for its grant to reach the stores. */
const storeLagMs = 1000;
/** Each waiting connect holds a connection, and a thief of the gateway's token could start many. */
const maxWaiting = 16;

/** For the webhooks that audit and authorize connects. A part of `AccessReviews`. */
export function connectTargets({ stores, client, clock }: ConnectTargetsDeps) {
  const storeWaits = new StoreWaits({
    stores: [...stores.requests, stores.pods],
    clock,
    limitMs: storeLagMs,
    maxWaiting,
  });
  const podCreators = accesses.filter(({ createsPod }) => createsPod);
  const podRequests = podCreators.map(({ request }) => stores.of(request.resource.kind).requests);

  /** By the pod's label and owner or, if a client changed those, by its uid. */
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
      return {
        uid: pod.uid,
        isAccessPod: requestOf(pod) !== undefined,
        grants: requests.filter((request) => isOpen(request, clock)).flatMap(grantsOf),
      };
    },

    async connectTarget(namespace: string, name: string, signal: AbortSignal) {
      const pod = stores.pods.get(keyOf({ namespace, name })) ?? (await livePod({ namespace, name }, signal));
      if (!pod) return undefined;
      const cached = requestOf(pod);
      const isAccessPod = cached !== undefined || pod.requestRef !== undefined;
      // The grant is stored before the pod is created: without one, the store may lag behind.
      const request = cached?.grant ? cached : await liveRequest(pod, signal);
      return { uid: pod.uid, isAccessPod, grants: request && isOpen(request, clock) ? grantsOf(request) : [] };
    },

    async gatewayTarget(namespace: string, name: string, signal: AbortSignal) {
      const key = keyOf({ namespace, name });
      await storeWaits.until(() => openViaGateway(key).length > 0, signal);
      const pod = stores.pods.get(key);
      if (!pod) return undefined;
      const grants = openViaGateway(key).flatMap(grantsOf);
      return { uid: pod.uid, isAccessPod: requestOf(pod) !== undefined, grants };
    },
  };

  /** A later pod of the same name is another pod. */
  function openViaGateway(key: string): readonly RequestView[] {
    const pod = stores.pods.get(key);
    if (!pod) return [];
    const opensPod = ({ uid, grant, children }: RequestView): boolean =>
      grant?.pod.uid === undefined
        ? pod.requestRef?.uid === uid || children.some((child) => child.uid === pod.uid)
        : grant.pod.uid === pod.uid;
    return stores.requests
      .flatMap((store) => store.byIndex(byPod, key))
      .filter((request) => request.grant?.session && opensPod(request) && isOpen(request, clock));
  }

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

/** By the wall clock. A request may outlive its access, such as until a review. */
const isOpen = (request: RequestView, clock: Clock): boolean =>
  !request.revoked &&
  !request.deleting &&
  !request.ended &&
  !request.conditions.some(isClosing) &&
  clock.now() < (accessEndMs(request) ?? 0);

/** Fails closed, if `status.ended` is missing. */
const isClosing = ({ type, status }: Condition): boolean =>
  status === 'False' &&
  (type === requestConditions.accessStillValid || type === requestConditions.accessResourcesCreated);

const grantsOf = ({ name, grant }: RequestView) => {
  if (!grant) return [];
  const { template, subjects, rules, session } = grant;
  return [
    {
      request: name,
      template: template.name,
      subjects,
      rules,
      ...(session ? { viaGateway: true as const } : {}),
    },
  ];
};
