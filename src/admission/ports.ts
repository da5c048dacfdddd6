import type { Account, LimitUse } from '../access/policy/limits.ts';
import type { Caller, TemplateState } from '../access/policy/request-policy.ts';
import type { GrantingTemplate, Permission } from '../access/policy/template-permissions.ts';
import type { TemplateInput } from '../access/policy/template-policy.ts';
import type { GrantSubject } from '../api/access/grant.ts';
import type { TemplateKind } from '../api/access/names.ts';
import type { RequesterAttestation, RequesterSignature } from '../api/access/request-spec.ts';
import type { AuthorAttestation } from '../api/access/template-spec.ts';
import type { ReconcileRun } from '../api/inventory/reconcile-run.ts';
import type { Journal } from '../audit/journal.ts';
import type { ConnectSubresource } from '../audit/record.ts';
import type { RegistrationPaths } from '../inventory/policy/registration-rules.ts';
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

/** An open grant whose subjects may connect to a pod. */
export interface PodGrant {
  /** Name of the request, in the pod's namespace. */
  readonly request: string;
  readonly subjects: readonly GrantSubject[];
}

/** The pod that a call connects to. */
export interface ConnectTarget {
  readonly uid: string;
  /** Whether the pod is an access pod, which the server created for one request. */
  readonly ours: boolean;
  readonly grants: readonly PodGrant[];
}

/** One answered review, for metrics. It has no identities. */
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
  /** Records that the server rejected a call: no memory for its bytes, or a full queue. */
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
   * SubjectAccessReviews: true if the caller already has all permissions of the template in the namespace, and may create its pod. False
   * for a template whose rules the server never grants.
   */
  alreadyHolds(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    template: GrantingTemplate,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** Permissions that templates may grant besides those of every grant. */
  readonly grantable: TemplateInput['grantable'];
  /** Current use of every limit that applies to one more grant, from local caches. */
  limitUses(account: Account): readonly LimitUse[];
  /** SubjectAccessReviews: returns those of `permissions` that the caller does not have. */
  missingPermissions(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    permissions: readonly Permission[],
    signal: AbortSignal,
  ): Promise<readonly Permission[]>;
  /** Signs who created a request. Undefined until the server has read its keys. */
  signRequester(attestation: RequesterAttestation): RequesterSignature | undefined;
  /** Signs who wrote a template. Undefined until the server has read its keys. */
  signAuthor(attestation: AuthorAttestation): string | undefined;
  /** Reads only the stores, for audit lines, and does not verify grants. Undefined if the stores do not have the pod. */
  cachedConnectTarget(namespace: string, name: string): ConnectTarget | undefined;
  /** Adds live reads where a store may lag, and returns only grants with a valid signature. Undefined if the pod does not exist. */
  connectTarget(namespace: string, name: string, signal: AbortSignal): Promise<ConnectTarget | undefined>;
  /** Members may connect to every access pod; each call leaves a Warning Event. Undefined if the administrator set no group. */
  readonly breakGlassGroup: string | undefined;
  /** Enqueues an Event on the pod; must not block or throw. */
  recordConnect(event: PodConnectEvent): void;
}

export interface AdmissionPorts extends AccessReviews, ReviewPorts {}

/** Reads and writes of the inventory webhooks. If one rejects, the webhook denies the request. */
export interface InventoryPorts extends ReviewPorts {
  /** Live read of the latest run record of a component and entry. Undefined if there is no readable one. */
  latestRun(
    namespace: string,
    entryUid: string,
    component: string,
    signal: AbortSignal,
  ): Promise<ReconcileRun | undefined>;
  /** Paths that a component owns, from the store or, if the registration is missing there, live. Undefined if it is not registered. */
  writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined>;
  /** Live read of all readable registrations. */
  registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]>;
  /** `namespace/name` of one run record of the component. Undefined if it has none. */
  anyRunOf(component: string, signal: AbortSignal): Promise<string | undefined>;
  /** Records that the webhook denied a write of a component. Dry runs are excluded. */
  recordDeniedWrite(code: string): void;
}
