import { readClaim } from '../../api/access/request-spec.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { type Approval, type Opening, openingOf } from '../policy/opening.ts';
import { votesNeeded } from '../policy/vote-count.ts';
import type { Signer } from '../signing/signer.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import { approvalsOf, type JudgedVote, type Votes } from './votes.ts';

interface OpeningDeciderDeps {
  readonly votes: Votes;
  readonly signer: Signer;
  readonly clock: Clock;
}

/**
 * Decides whether access of undecided requests may open now, or what it waits for: the votes of other people, its start, or the claim of
 * the requester.
 */
export class OpeningDecider {
  readonly #deps: OpeningDeciderDeps;

  constructor(deps: OpeningDeciderDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the decision about the request, and the votes that it judged. If the template requires no approvals or the request is an
   * emergency, and no vote in the store denies the request, judges no votes, and `votes` is empty. Reads the votes from the API server if
   * the store has enough approvals, or a vote that denies the request, or if the deadline for approvals has passed. In all other cases the
   * request stays pending, so the votes of the store suffice. Rejects as the client does, and if the keys cannot be read.
   */
  async decide(
    request: RequestView,
    template: TemplateView,
    signal: AbortSignal,
  ): Promise<{ readonly opening: Opening; readonly votes: readonly JudgedVote[] }> {
    const config = template.spec.accessConfig;
    const claimedAtMs = await this.#claimedAtMs(request, config, signal);
    // Both calls of `openingBy` use one time, so that a deadline that passes between them times out no request whose votes suffice.
    const nowMs = this.#deps.clock.now();
    const openingBy = (approvals: readonly Approval[]): Opening =>
      openingOf({ ...request, config, approvals, claimedAtMs }, nowMs);
    const withoutVotes = openingBy([]);
    const asked = request.spec.emergency ? undefined : config.approvals;
    if (!asked && !this.#deps.votes.mayBeDenied(request)) return { opening: withoutVotes, votes: [] };
    const needed = asked && withoutVotes.is === 'pending' ? votesNeeded(asked.all) : 0;
    const votes = await this.#deps.votes.judge(request, template, { about: 'Access', needed }, signal);
    return { opening: openingBy(approvalsOf(votes)), votes };
  }

  /**
   * When the requester claimed the access, epoch ms. Undefined unless our webhook signed the claim, because any user who can update the
   * request could set `spec.claimed` while the webhook is not called.
   */
  async #claimedAtMs(
    request: RequestView,
    { approvals }: AccessConfig,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const claim = request.spec.claimed ? readClaim(request.spec.claimSignature) : undefined;
    if (!claim || approvals?.claimWithin === undefined) return undefined;
    const change = { field: 'claimed', time: claim.time } as const;
    const isOurs = await this.#deps.signer.isOurChange(request, change, claim.mac, signal);
    return isOurs ? parseTime(claim.time) : undefined;
  }
}
