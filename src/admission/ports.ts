import type { Account, LimitUse } from '../access/policy/limits.ts';
import type { Caller, TemplateState } from '../access/policy/request-policy.ts';
import type { TemplateInput } from '../access/policy/template-policy.ts';
import type { GrantingTemplate, Right } from '../access/policy/template-rights.ts';
import type { GrantSubject } from '../api/access/grant.ts';
import type { TemplateKind } from '../api/access/names.ts';
import type { RequesterAttestation, RequesterSignature } from '../api/access/request-spec.ts';
import type { AuthorAttestation } from '../api/access/template-spec.ts';
import type { ReconcileRun } from '../api/inventory/reconcile-run.ts';
import type { Journal } from '../audit/journal.ts';
import type { EntrySubresource } from '../audit/record.ts';
import type { RegistrationPaths } from '../inventory/policy/registration-rules.ts';
import type { Clock } from '../kit/clock.ts';
import type { JsonPointer } from '../kit/json-pointer.ts';
import type { Log } from '../observe/log.ts';
import type { Operation, UserInfo } from './codec.ts';

/** Somebody enters a pod; becomes an Event on it. */
export interface PodEntry {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly namespace: string;
  readonly pod: string;
  readonly note: string;
}

/** An open grant that lets its subjects into a pod. */
export interface PodGrant {
  /** Name of the request, in the pod's namespace. */
  readonly request: string;
  readonly subjects: readonly GrantSubject[];
}

/** A pod that somebody enters. */
export interface EnteredPod {
  readonly uid: string;
  /** We made it, for one request: it is nobody else's. */
  readonly ours: boolean;
  readonly grants: readonly PodGrant[];
}

/** One answered review, for metrics. No identities. */
export interface Outcome {
  readonly webhook: string;
  readonly operation: Operation;
  readonly allowed: boolean;
  /** Code of the refusal; empty when allowed. */
  readonly code: string;
  readonly seconds: number;
  readonly namespace: string;
  readonly dryRun: boolean;
  /** Name of the template, where the review was about one. */
  readonly template: string;
  /** How a pod was entered. */
  readonly entry?: { readonly way: EntrySubresource; readonly interactive: boolean };
}

/** What every webhook needs. */
export interface ReviewPorts {
  answered(outcome: Outcome): void;
  /** A call was turned away for want of room for its bytes, or because too many wait for their turn. */
  overloaded(wanted: 'bytes' | 'turn'): void;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
}

/** What the webhooks of access need of the world; the composition root provides it. Rejections refuse the request at hand (fail closed). */
export interface AccessReviews {
  /** From the store; one live read when the store does not have it, because it may lag behind the caller's own write. */
  templateState(kind: TemplateKind, namespace: string, name: string, signal: AbortSignal): Promise<TemplateState>;
  /** SubjectAccessReviews: may this caller do in the namespace whatever the template gives, and make the pod that it makes, anyway? */
  alreadyHolds(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    template: GrantingTemplate,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** What templates may hand out besides what every grant gives. */
  readonly grantable: TemplateInput['grantable'];
  /** Every limit that one more grant would come under, by what is known here. */
  limitUses(account: Account): readonly LimitUse[];
  /** SubjectAccessReviews: those of `rights` that the caller does not have. */
  lacking(
    caller: Caller & Pick<UserInfo, 'extra'>,
    namespace: string,
    rights: readonly Right[],
    signal: AbortSignal,
  ): Promise<readonly Right[]>;
  /** Signs a stamp; undefined while the keys have not been read. */
  sealStamp(stamp: RequesterAttestation): RequesterSignature | undefined;
  /** Signs who wrote a template; undefined while the keys have not been read. */
  sealAuthor(stamp: AuthorAttestation): string | undefined;
  /** From the stores alone, for what only tells; undefined for a pod that they do not have. */
  knownPod(namespace: string, name: string): EnteredPod | undefined;
  /** With live reads where a store may lag behind, and grants only that are proved to be ours; undefined when there is no such pod. */
  enteredPod(namespace: string, name: string, signal: AbortSignal): Promise<EnteredPod | undefined>;
  /** Whoever is in it may enter every access pod, loudly; undefined when there is no such group. */
  readonly breakGlassGroup: string | undefined;
  /** Writes an Event on the pod, some time; must not block or throw. */
  podEntered(entry: PodEntry): void;
}

export interface AdmissionPorts extends AccessReviews, ReviewPorts {}

/** What the webhooks of the inventory need of the world. Rejections refuse the request at hand (fail closed). */
export interface InventoryPorts extends ReviewPorts {
  /** The latest record of a component of an entry, never a cached one; undefined when there is none that can be read. */
  latestRun(
    namespace: string,
    entryUid: string,
    component: string,
    signal: AbortSignal,
  ): Promise<ReconcileRun | undefined>;
  /** What a component owns; undefined when it is not registered. */
  writesOf(component: string, signal: AbortSignal): Promise<readonly JsonPointer[] | undefined>;
  /** All registrations there are. */
  registrations(signal: AbortSignal): Promise<readonly RegistrationPaths[]>;
  /** `namespace/name` of one of the component's records; undefined when it has none. */
  anyRunOf(component: string, signal: AbortSignal): Promise<string | undefined>;
  /** A write of a component was refused; not told of dry runs. */
  fenced(code: string): void;
}
