import type { OverdueReview } from '../access/policy/emergency-policy.ts';
import type { Extendable } from '../access/policy/extension-choice.ts';
import type { Account, LimitUse } from '../access/policy/limits.ts';
import type { Violation } from '../access/policy/policy.ts';
import type { Caller, TemplateState } from '../access/policy/request-policy.ts';
import type { GrantingTemplate, Permission } from '../access/policy/template-permissions.ts';
import type { notPlanned, PlannedTemplate, TemplateInput } from '../access/policy/template-policy.ts';
import type { VotedRequest } from '../access/policy/vote-policy.ts';
import type { VoteAttestation, VoteSpec } from '../api/access/access-vote.ts';
import type { Ended } from '../api/access/ended.ts';
import type { GrantedRule, GrantSubject } from '../api/access/grant.ts';
import type { RequestKind } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
import type {
  ChangedRequest,
  RequesterAttestation,
  RequesterChange,
  RequesterSignature,
} from '../api/access/request-spec.ts';
import type { AuthorAttestation } from '../api/access/template-spec.ts';
import type { ReconcileRun } from '../api/inventory/reconcile-run.ts';
import type { ObjectName } from '../api/object.ts';
import type { Journal } from '../audit/journal.ts';
import type { ConnectSubresource } from '../audit/record.ts';
import type { RegistrationPaths } from '../inventory/policy/registration-rules.ts';
import type { RegisteredComponent } from '../inventory/policy/setting-warnings.ts';
import type { Clock } from '../kit/clock.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';
import type { Log } from '../observe/log.ts';
import type { Operation, UserInfo } from './codec.ts';

/** A call that connects to a pod. The server records it as an Event on the pod. */
export interface PodConnectEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly note: string;
}

/** The result of planning a request through a template. */
export interface PresentPlan {
  /** The violation that planning found; undefined if there is none. `notPlanned` as in `ownViolations`. */
  readonly denial?: Violation | typeof notPlanned | undefined;
  /** What the access command names that the planned pod may lack, one sentence each. */
  readonly commandNotes?: readonly string[];
  /** The objects in `spec.allowedSelectors` that do not exist, one sentence each. */
  readonly selectorNotes?: readonly string[];
}

/** An open grant whose subjects may connect to a pod. */
export interface PodGrant {
  /** Name of the request, in the pod's namespace. */
  readonly request: string;
  /** Name of the template of the request. */
  readonly template: string;
  readonly subjects: readonly GrantSubject[];
  /** What the subjects may do. */
  readonly rules: readonly GrantedRule[];
  /** True if the subjects may connect only through the gateway. */
  readonly viaGateway?: true;
}

/** The pod that a call connects to. */
export interface ConnectTarget {
  readonly uid: string;
  /** Whether the pod is an access pod, which the server created for one request. */
  readonly isAccessPod: boolean;
  readonly grants: readonly PodGrant[];
}

/** One answered review, for metrics. It names no user. */
export interface Outcome {
  readonly webhook: string;
  readonly operation: Operation;
  readonly allowed: boolean;
  /** Code of the denial; empty if allowed. */
  readonly code: string;
  /** Time to decide and to write the audit line. */
  readonly seconds: number;
  /** Empty for a call that connects to a pod that does not exist or is unknown. */
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Name of the template; empty if the review concerns none. */
  readonly template: string;
  /** Set for calls that connect to a pod. */
  readonly connect?: { readonly subresource: ConnectSubresource; readonly interactive: boolean };
}

/** Dependencies of every webhook. */
export interface ReviewPorts {
  recordOutcome(outcome: Outcome): void;
  /** Records that the server rejected a call because it had no memory for its bytes, or because the queue was full (`turn`). */
  recordOverload(wanted: 'bytes' | 'turn'): void;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reads and writes of the access webhooks. The composition root provides them. If one rejects, the webhook denies the request, unless it is
 * observe-only.
 */
export interface AccessReviews {
  /** Reads the store. If the template is missing there, one live read follows, because the store may lag behind the caller's own write. */
  templateState(kind: TemplateKind, namespace: string, name: string, signal: AbortSignal): Promise<TemplateState>;
  /**
   * Whether the caller already holds `permissionsToHold` of the template in the namespace, by SubjectAccessReviews. False for a template
   * whose rules are invalid.
   */
  alreadyHolds(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    template: GrantingTemplate,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Permissions that templates may grant besides those of every grant. */
  readonly grantable: TemplateInput['grantable'];
  /** The namespace of the server. */
  readonly serverNamespace: string;
  /**
   * What would deny every request through the template even in an empty namespace. Empty if nothing would. `notPlanned` if planning takes
   * too much work for a webhook, or if too many plans wait. `address`: of the client that sent the review, by which `AdmissionPlanQueue`
   * shares the processor time.
   */
  ownViolations(
    template: PlannedTemplate,
    address: string,
    signal: AbortSignal,
  ): Promise<readonly Violation[] | typeof notPlanned>;
  /** The plan of a request through the template now, according to the stores. */
  presentPlan(template: PlannedTemplate, address: string, signal: AbortSignal): Promise<PresentPlan>;
  /** `GatewayUnavailable` unless the API server forwards calls to the gateway, according to the store. */
  gatewayViolation(): Violation | undefined;
  /** Current use of every limit that applies to one more grant, from local caches. */
  limitUses(account: Account): readonly LimitUse[];
  /** Those of `permissions` that the caller does not hold, by SubjectAccessReviews. */
  missingPermissions(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    permissions: readonly Permission[],
    signal: AbortSignal,
  ): Promise<readonly Permission[]>;
  /** Signs who created a request. Undefined until the server has read its keys. */
  signRequester(attestation: RequesterAttestation): RequesterSignature | undefined;
  /** Signs that the requester claimed or extended access. Undefined until the server has read its keys. */
  signChange(request: ChangedRequest, change: RequesterChange): string | undefined;
  /** The access of a request as the API server sent it. Undefined unless it is open. */
  openAccess(kind: RequestKind, request: unknown): Extendable | undefined;
  /** How the request ended, if `status.ended` has a valid signature. Undefined until the server has read its keys. */
  verifiedEnd(kind: RequestKind, request: unknown): Ended | undefined;
  /** An overdue review that blocks further emergencies of this user through this template, from the store. Undefined if there is none. */
  overdueReview(user: Caller, namespace: string, kind: TemplateKind, template: string): OverdueReview | undefined;
  /** The request that a vote names or, once that is deleted, the record of its emergency. Reads live if the store lacks the request. */
  votedRequest(request: VoteSpec['request'], namespace: string, signal: AbortSignal): Promise<VotedRequest>;
  /** When the vote of this name by this user was created, epoch ms, from the store, which may lag behind. Undefined if it has none. */
  votedAtMs(name: ObjectName, username: string): number | undefined;
  /** Whether the caller holds the verb `approve` on the template, by a SubjectAccessReview. */
  mayApprove(
    caller: Caller & Pick<UserInfo, 'extra'>,
    template: { readonly kind: TemplateKind; readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Signs who voted. Undefined until the server has read its keys. */
  signVote(attestation: VoteAttestation): string | undefined;
  /** Signs who wrote a template. Undefined until the server has read its keys. */
  signAuthor(attestation: AuthorAttestation): string | undefined;
  /** The pod and its open grants from the stores, not verified: for audit lines only. Undefined if the stores do not have the pod. */
  cachedConnectTarget(namespace: string, name: string): ConnectTarget | undefined;
  /**
   * The pod and, for an access pod, its open grant with a valid signature. Reads live where a store may lag behind. Undefined if the pod
   * does not exist.
   */
  connectTarget(namespace: string, name: string, signal: AbortSignal): Promise<ConnectTarget | undefined>;
  /**
   * The pod and its open Gateway grants with a valid signature. Waits up to 1 s for the stores if they have none, because they may lag
   * behind a new grant. Undefined if the stores do not have the pod.
   */
  gatewayTarget(namespace: string, name: string, signal: AbortSignal): Promise<ConnectTarget | undefined>;
  /** The group whose members may connect to every access pod, each time with a Warning Event. Undefined if the administrator set none. */
  readonly breakGlassGroup: string | undefined;
  /** Enqueues an Event on the pod; must not block or throw. */
  recordConnect(event: PodConnectEvent): void;
}

/** Dependencies of the access webhooks. */
export interface AdmissionPorts extends AccessReviews, ReviewPorts {}

/** Reads and writes of the inventory webhooks. If one rejects, the webhook denies the request. */
export interface InventoryPorts extends ReviewPorts {
  /** Live read of the latest run record of a component and entry. Undefined if there is no readable one. */
  latestRun(
    entry: { readonly namespace: string; readonly name: string; readonly uid: string },
    component: string,
    signal: AbortSignal,
  ): Promise<ReconcileRun | undefined>;
  /** Paths that a component owns, from the store or, if the registration is missing there, live. Undefined if it is not registered. */
  writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined>;
  /** Live read of all readable registrations. */
  registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]>;
  /** The registered components, from the store, for warnings. */
  registered(): readonly RegisteredComponent[];
  /** `NAMESPACE/NAME` of some entries with run records of the component; empty if it has none. */
  entriesOf(component: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Records that the webhook denied a write of a component. Dry runs are excluded. */
  recordDeniedWrite(code: string): void;
}
