import type { Caller, TemplateState } from '../access/policy/request-policy.ts';
import type { Stamp, StampSeal } from '../api/access/requester.ts';
import type { Journal } from '../audit/journal.ts';
import type { Clock } from '../kit/clock.ts';
import type { Log } from '../observe/log.ts';
import type { Operation, UserInfo } from './codec.ts';

export type RequestKind = 'PodAccessRequest' | 'ExecAccessRequest';
export type TemplateKind = 'PodAccessTemplate' | 'ExecAccessTemplate';

/** Somebody entered a pod. */
export interface PodEntry {
  readonly reason: 'PodExec' | 'PodAttach';
  readonly namespace: string;
  readonly pod: string;
  readonly note: string;
}

/** One answered review, for metrics. No identities. */
export interface Outcome {
  readonly webhook: string;
  readonly operation: Operation;
  readonly allowed: boolean;
  /** Code of the refusal; empty when allowed. */
  readonly code: string;
  readonly seconds: number;
}

/** What the webhooks need of the world; the composition root provides it. Rejections refuse the request at hand (fail closed). */
export interface AdmissionPorts {
  /** From the store; one live read when the store does not have it, because it may lag behind the caller's own write. */
  templateState(kind: TemplateKind, namespace: string, name: string, signal: AbortSignal): Promise<TemplateState>;
  /** SubjectAccessReview: may this caller `create` `pods/exec` in the namespace anyway? */
  alreadyHolds(caller: Caller & Pick<UserInfo, 'extra'>, namespace: string, signal: AbortSignal): Promise<boolean>;
  /** Signs a stamp; undefined while the keys have not been read. */
  sealStamp(stamp: Stamp): StampSeal | undefined;
  /** Writes an Event on the pod, some time; must not block or throw. */
  podEntered(entry: PodEntry): void;
  answered(outcome: Outcome): void;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
}
