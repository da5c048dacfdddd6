import type { Grant } from '../../api/access/grant.ts';
import type { RequestedExtension } from '../../api/access/request-spec.ts';
import type { RequestApproval } from '../../api/access/status.ts';
import type { RbacRule } from '../../rbac/rule-cover.ts';
import type { AccessKind } from '../access-kind.ts';
import type { GrantTerms, Plan, Planned } from '../builders/plan.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import type { Certified } from '../policies/policy-check.ts';
import type { OverdueReview } from '../policy/emergency-policy.ts';
import type { Extendable } from '../policy/extension-choice.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import type { VoteView } from '../stores/vote-view.ts';
import type { ApprovalUpdate, Update } from './approval-status.ts';
import type { Cause, GrantShown } from './status.ts';
import type { JudgedVote } from './votes.ts';

/** What the server does next about a request. */
export type Next =
  /** First, find out this fact, which takes a call or changes a count. */
  | Look
  /** Close its access, then show the end. */
  | { readonly do: 'end'; readonly cause: Cause }
  /** Show whether the review of the emergency is owed, overdue, or done. Then ask again. */
  | { readonly do: 'review'; readonly approval: RequestApproval; readonly condition?: Update }
  | { readonly do: 'deny'; readonly violation: Violation; readonly approval?: RequestApproval; readonly by?: string }
  /** Until an event, or `untilMs` (epoch ms). `blocked`: what prevents the grant although approved. */
  | (ApprovalUpdate & {
      readonly do: 'wait';
      readonly reasonLink: string | undefined;
      readonly untilMs: number;
      readonly blocked: (Violation & { readonly untilMs: number }) | undefined;
    })
  /** Until there is a proof of the admission policies. */
  | { readonly do: 'await' }
  | { readonly do: 'grant'; readonly shown: GrantShown; readonly plan: Plan; readonly review: OwedReview | undefined }
  /** Open the grant, or show how open it is. Then ask again. */
  | { readonly do: 'open' }
  | ExtensionStep
  /** It has ended, and stays until `untilMs` (epoch ms). */
  | { readonly do: 'keep'; readonly untilMs: number }
  /** It has ended, and goes; `now`: a user or this process has deleted it. */
  | { readonly do: 'remove'; readonly now: boolean }
  /** Nothing, until an event or `untilMs` (epoch ms). */
  | { readonly do: 'rest'; readonly untilMs?: number | undefined }
  /** Nothing can be decided in a gap of the admission policies. */
  | { readonly do: 'retry' };

export type Look = { readonly do: 'look' } & (
  | { readonly at: PlainFact }
  /** `needed`: how many approvals can decide; undefined if it needs none. */
  | { readonly at: 'votes'; readonly about: string; readonly needed: number | undefined }
  | { readonly at: 'plan'; readonly terms: GrantTerms }
  | { readonly at: 'limit'; readonly grant: Grant }
);

export type PlainFact = 'lost' | 'held' | 'denial' | 'absence' | 'author' | 'certified' | 'reviewVotes' | 'surplus';

/** Show the decision. `untilMs`: as of `rest`. */
export interface ExtensionStep {
  readonly do: 'extend';
  readonly asked: RequestedExtension;
  readonly access: Extendable;
  readonly to: Extension;
  readonly untilMs: number | undefined;
}

export type Extension =
  | { readonly state: 'Granted'; readonly endMs: number; readonly votes: readonly JudgedVote[] }
  | { readonly state: 'Denied'; readonly violation: Violation }
  | { readonly state: 'Pending'; readonly message: string };

/** As they were when the reconcile began. */
export interface Facts extends Looked {
  readonly kind: Pick<AccessKind, 'requestKind' | 'templateKind'>;
  /** What templates may hand out in addition to the rules of every grant. */
  readonly grantable: readonly RbacRule[];
  /** In the store. */
  readonly template: TemplateView | undefined;
  /** Epoch ms, for ends: the later of the wall clock and the monotonic clock. */
  readonly endClockMs: number;
  /** Of an end that began. */
  readonly cause: Cause | undefined;
  /** This process has deleted the request. */
  readonly isRemoved: boolean;
  readonly owed: OwedReview | undefined;
  /** Of another emergency of the requester. */
  readonly overdue: OverdueReview | undefined;
  readonly proof: Certified;
  /** By a vote in the store, which may be invalid. */
  readonly mayBeDenied: boolean;
  /** A limit on open grants applies. */
  readonly isLimited: boolean;
  readonly access: Extendable | undefined;
  /** The grant is open; `recheckMs` (epoch ms): when to look at it again. */
  readonly opened?: { readonly recheckMs: number | undefined };
}

/** Undefined until the server looked; null: there is none. */
export interface Looked {
  /** The template or pod of the grant no longer exists, or the pod has ended. */
  readonly lost?: Cause | null;
  /** The requester holds all permissions that the template hands out. */
  readonly held?: boolean;
  /** A valid vote that denies open access. */
  readonly denial?: VoteView | null;
  /** Why the template that the store lacks counts as missing. Null: it exists. */
  readonly absence?: Violation | null;
  readonly author?: Violation | null;
  readonly votes?: readonly JudgedVote[];
  readonly reviewVotes?: readonly JudgedVote[];
  /** `doneMs` (epoch ms): when the plan was made. */
  readonly plan?: { readonly planned: Planned; readonly doneMs: number };
  readonly certified?: Certified;
  /** The limit on open grants that the grant exceeds. Null: it is counted. */
  readonly limit?: Violation | null;
  /** Ended requests beyond the maximum. */
  readonly surplus?: readonly RequestView[];
}

export const look = (at: PlainFact): Look => ({ do: 'look', at });
