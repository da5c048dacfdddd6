import type { OverdueReview } from '../access/policy/emergency-policy.ts';
import type { Extendable } from '../access/policy/extension-choice.ts';
import type { Account, LimitUse } from '../access/policy/limits.ts';
import type { Violation } from '../access/policy/policy.ts';
import type { Caller, TemplateState } from '../access/policy/request-policy.ts';
import type { GrantingTemplate, Permission } from '../access/policy/template-permissions.ts';
import type { notPlanned, PlannedTemplate, TemplateInput } from '../access/policy/template-policy.ts';
import type { VotedRequest } from '../access/policy/vote-policy.ts';
import type { VoteSpec } from '../api/access/access-vote.ts';
import type { Ended } from '../api/access/ended.ts';
import type { GrantedRule, GrantSubject } from '../api/access/grant.ts';
import type { RequestKind } from '../api/access/kinds.ts';
import type { TemplateKind } from '../api/access/names.ts';
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

export interface PodConnectEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly note: string;
}

/** Of a request through a template. */
export interface PresentPlan {
  /** `notPlanned` as in `ownViolations`. */
  readonly denial?: Violation | typeof notPlanned | undefined;
  /** Entries of `spec.allowedSelectors` that do not exist, one sentence each. */
  readonly selectorNotes?: readonly string[];
}

export interface PodGrant {
  /** In the pod's namespace. */
  readonly request: string;
  /** Of the request. */
  readonly template: string;
  readonly subjects: readonly GrantSubject[];
  readonly rules: readonly GrantedRule[];
  /** Only through the gateway. */
  readonly viaGateway?: true;
}

export interface ConnectTarget {
  readonly uid: string;
  /** The server created it for one request. */
  readonly isAccessPod: boolean;
  readonly grants: readonly PodGrant[];
}

/** One answered review, for metrics. It names no user. */
export interface Outcome {
  readonly webhook: string;
  readonly operation: Operation;
  readonly allowed: boolean;
  /** Empty if allowed. */
  readonly code: string;
  /** To decide and to write the audit line. */
  readonly seconds: number;
  /** Empty for a connect to an unknown pod. */
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Empty if the review concerns no template. */
  readonly template: string;
  /** For calls that connect to a pod. */
  readonly connect?: { readonly subresource: ConnectSubresource; readonly interactive: boolean };
}

/** Of every webhook. */
export interface ReviewPorts {
  recordOutcome(outcome: Outcome): void;
  /** No memory for the bytes of a call, or a full queue (`turn`). */
  recordOverload(wanted: 'bytes' | 'turn'): void;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
}

/** For the access webhooks. If one rejects, the webhook denies, unless it is observe-only. */
export interface AccessReviews {
  /** The store, else one live read: it may lag behind the caller's own write. */
  templateState(kind: TemplateKind, namespace: string, name: string, signal: AbortSignal): Promise<TemplateState>;
  /** Holds `permissionsToHold`. False if the rules of the template are invalid. */
  alreadyHolds(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    template: GrantingTemplate,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Beyond those of every grant. */
  readonly grantable: TemplateInput['grantable'];
  readonly serverNamespace: string;
  /**
   * What denies every request even in an empty namespace. `notPlanned`: too much work, or too many
   * plans. `address`: the client, by which plans share the processor.
   */
  ownViolations(
    template: PlannedTemplate,
    address: string,
    signal: AbortSignal,
  ): Promise<readonly Violation[] | typeof notPlanned>;
  /** Of a request now, according to the stores. */
  presentPlan(template: PlannedTemplate, address: string, signal: AbortSignal): Promise<PresentPlan>;
  /** According to the store. */
  gatewayViolation(): Violation | undefined;
  /** For one more grant, from local caches. */
  limitUses(account: Account): readonly LimitUse[];
  /** By SubjectAccessReviews. */
  missingPermissions(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    permissions: readonly Permission[],
    signal: AbortSignal,
  ): Promise<readonly Permission[]>;
  /** Of a request as the API server sent it. */
  openAccess(kind: RequestKind, request: unknown): Extendable | undefined;
  endOf(kind: RequestKind, request: unknown): Ended | undefined;
  /** It blocks further emergencies of this user through this template. From the store. */
  overdueReview(user: Caller, namespace: string, kind: TemplateKind, template: string): OverdueReview | undefined;
  /** The request or, once deleted, the record of its emergency. Live if the store lacks it. */
  votedRequest(request: VoteSpec['request'], namespace: string, signal: AbortSignal): Promise<VotedRequest>;
  /** Epoch ms, from the store, which may lag behind. */
  votedAtMs(name: ObjectName, username: string): number | undefined;
  /** The verb `approve` on the template, by a SubjectAccessReview. */
  mayApprove(
    caller: Caller & Pick<UserInfo, 'extra'>,
    template: { readonly kind: TemplateKind; readonly namespace: string; readonly name: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  /** From the stores: for audit lines only. */
  cachedConnectTarget(namespace: string, name: string): ConnectTarget | undefined;
  /** With the open grant of an access pod. Live where a store may lag behind. */
  connectTarget(namespace: string, name: string, signal: AbortSignal): Promise<ConnectTarget | undefined>;
  /** With open Gateway grants. Waits up to 1 s for stores that lag behind. */
  gatewayTarget(namespace: string, name: string, signal: AbortSignal): Promise<ConnectTarget | undefined>;
  /** May connect to every access pod, each time with a Warning Event. */
  readonly breakGlassGroup: string | undefined;
  /** Must not block or throw. */
  recordConnect(event: PodConnectEvent): void;
}

export interface AdmissionPorts extends AccessReviews, ReviewPorts {}

/** What the inventory webhooks read and record. If one rejects, the webhook denies the request. */
export interface InventoryPorts extends ReviewPorts {
  /** A live read, of a readable record. */
  latestRun(
    entry: { readonly namespace: string; readonly name: string; readonly uid: string },
    component: string,
    signal: AbortSignal,
  ): Promise<ReconcileRun | undefined>;
  /** What a component owns, live if the store lacks it. Undefined if it is not registered. */
  writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined>;
  /** A live read, of the readable ones. */
  registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]>;
  /** From the store, for warnings. */
  registered(): readonly RegisteredComponent[];
  /** `NAMESPACE/NAME` of some entries with run records of the component. */
  entriesOf(component: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Not for dry runs. */
  recordDeniedWrite(code: string): void;
}
