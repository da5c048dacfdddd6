import type { Clock } from '../../kit/clock.ts';
import { type Approval, type Opening, openingOf } from '../policy/opening.ts';
import { votesNeeded } from '../policy/vote-count.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import { approvalsOf, type JudgedVote, type Votes } from './votes.ts';

interface OpeningDeciderDeps {
  readonly votes: Votes;
  readonly clock: Clock;
}

/** Whether access may open, or waits for votes, its start, or the requester's claim. */
export class OpeningDecider {
  readonly #deps: OpeningDeciderDeps;

  constructor(deps: OpeningDeciderDeps) {
    this.#deps = deps;
  }

  /** By a vote, which may be invalid. */
  mayBeDenied(request: RequestView): boolean {
    return this.#deps.votes.mayBeDenied(request);
  }

  /** Without `approvals`, or in an emergency, judges votes only if the store has a denial. */
  async decide(
    request: RequestView,
    template: TemplateView,
    signal: AbortSignal,
  ): Promise<{ readonly opening: Opening; readonly votes: readonly JudgedVote[] }> {
    const config = template.spec.accessConfig;
    // One time for both calls, so that no deadline passes between them.
    const nowMs = this.#deps.clock.now();
    const openingBy = (approvals: readonly Approval[]): Opening => openingOf({ ...request, config, approvals }, nowMs);
    const withoutVotes = openingBy([]);
    const asked = request.spec.emergency ? undefined : config.approvals;
    if (!asked && !this.#deps.votes.mayBeDenied(request)) return { opening: withoutVotes, votes: [] };
    const needed = asked && withoutVotes.is === 'pending' ? votesNeeded(asked.all) : 0;
    const votes = await this.#deps.votes.judge(request, template, { about: 'Access', needed }, signal);
    return { opening: openingBy(approvalsOf(votes)), votes };
  }
}
