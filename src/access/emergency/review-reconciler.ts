import { accessVotes } from '../../api/access/access-vote.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Client } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { denialIn, type JudgedVote } from '../lifecycle/votes.ts';
import { voteUncertified } from '../policies/policy-check.ts';
import { byRequest } from '../stores/access-stores.ts';
import type { VoteView } from '../stores/vote-view.ts';
import type { OwedReview, OwedReviews } from './owed-reviews.ts';

/** The same rules as for all votes. */
export interface ReviewJudge {
  judgeReview(review: OwedReview, signal: AbortSignal): Promise<readonly JudgedVote[]>;
}

interface ReviewReconcilerDeps {
  readonly reviews: OwedReviews;
  readonly votes: Store<VoteView>;
  readonly judgeOf: (kind: TemplateKind) => ReviewJudge;
  /** Writes the audit line, and records an Event. Rejects with `AuditUnavailable`. */
  readonly reviewed: (review: OwedReview, vote: VoteView) => Promise<void>;
  readonly client: Client;
}

/**
 * Settles reviews of emergencies, by request uid; the request may be deleted. Any valid vote about
 * `Review`, an Approve or a Deny, settles it.
 */
export class ReviewReconciler implements Reconciler {
  readonly #deps: ReviewReconcilerDeps;

  constructor(deps: ReviewReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(requestUid: string, signal: AbortSignal): Promise<Result> {
    const { reviews, votes, judgeOf, reviewed } = this.#deps;
    const review = reviews.of(requestUid);
    const candidates = votes.byIndex(byRequest, requestUid).filter(({ spec }) => spec.about === 'Review');
    if (review && candidates.length > 0) {
      const judged = await judgeOf(review.templateKind).judgeReview(review, signal);
      // A denial also ends open access, so it is the verdict that the record must have.
      const valid = denialIn(judged) ?? judged.find(({ violation }) => violation === undefined);
      // Its name is taken, and its voter may vote again.
      const uncertified = judged.filter(({ violation }) => violation === voteUncertified).map(({ vote }) => vote);
      await this.#delete(uncertified, signal);
      if (!valid) return done;
      // If `remove` fails, a retry adds the audit line again.
      await reviewed(review, valid.vote);
      await reviews.remove(requestUid, signal);
    }
    if (reviews.of(requestUid)) return done;
    // Kubernetes garbage-collects votes, except those without an owner, from after the deletion.
    await this.#delete(
      candidates.filter(({ hasOwner }) => !hasOwner),
      signal,
    );
    return done;
  }

  async #delete(votes: readonly VoteView[], signal: AbortSignal): Promise<void> {
    for (const vote of votes) await this.#deps.client.delete(accessVotes, vote, { uid: vote.uid, signal });
  }
}
