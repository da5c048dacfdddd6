import { accessVotes } from '../../api/access/access-vote.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { requestLabel } from '../../api/access/names.ts';
import { type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { CodedError } from '../../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { SharedCalls } from '../../kit/shared-calls.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { ApprovePermission, templateState } from '../admission-reads.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import { votedReview } from '../emergency/owed-reviews.ts';
import { type PolicyCheck, policiesAwaited, voteUncertified } from '../policies/policy-check.ts';
import type { Approval } from '../policy/opening.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import type { TemplateState } from '../policy/request-policy.ts';
import { type VotedRequest, voteName, votePolicy } from '../policy/vote-policy.ts';
import { byRequest } from '../stores/access-stores.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import { type VoteView, viewVote } from '../stores/vote-view.ts';
import { decidedExtensions } from './request-ends.ts';

export interface JudgedVote {
  readonly vote: VoteView;
  readonly violation: Violation | undefined;
}

interface VotesDeps {
  readonly store: Store<VoteView>;
  readonly templateKind: TemplateKind;
  readonly templateResource: Resource;
  readonly templates: Store<TemplateView>;
  readonly client: Client;
  readonly policies: PolicyCheck;
}

interface VoteQuestion {
  /** `spec.about` of its votes. */
  readonly about: string;
  /** Minimum of approvals that can decide it. With 0, `judge` always reads the votes live. */
  readonly needed: number;
}

interface VoteQuery {
  readonly namespace: string;
  readonly uid: string;
}

/** Reads and verifies the votes of requests. Concurrent decisions share their reads. */
export class Votes {
  readonly #deps: VotesDeps;
  /** By namespace. */
  readonly #lists: SharedCalls<VoteQuery, readonly VoteView[]>;
  /** By key. */
  readonly #templates: SharedCalls<TemplateView, KubeObject | undefined>;
  readonly #approvePermission: ApprovePermission;

  constructor(deps: VotesDeps) {
    this.#deps = deps;
    const { client, templateResource } = deps;
    this.#lists = new SharedCalls((queries, signal) => listVotes(client, queries, signal));
    this.#templates = new SharedCalls(([template], signal) =>
      findObject(client, templateResource, template, { signal }),
    );
    this.#approvePermission = new ApprovePermission(client);
  }

  /** The denial may be invalid: `judge` verifies it. */
  mayBeDenied(request: RequestView): boolean {
    return this.#storedDenials(request).length > 0;
  }

  /**
   * All votes about `about`, oldest first, verified now. If they may decide, reads them and the
   * template live: a store that lags behind could miss a denial or an edit.
   */
  async judge(
    request: RequestView,
    template: TemplateView,
    { about, needed }: VoteQuestion,
    signal: AbortSignal,
  ): Promise<JudgedVote[]> {
    const stored = this.#stored(request, about);
    const approvals = stored.filter(({ spec }) => spec.decision === 'Approve');
    if (approvals.length < needed && approvals.length === stored.length) {
      return this.#judge(stored, this.#foundRequest(request), templateState(template), signal);
    }
    const votes = await this.#listLive({ ...request, about }, signal);
    if (votes.length === 0) return [];
    const found = this.#foundRequest(request);
    // After the votes: an edit voids earlier approvals, and so does the loss of the verb `approve`.
    const [state, mayApproveByVote] = await Promise.all([
      this.#currentState(template, signal),
      this.#approvePermissions(votes, found, signal),
    ]);
    return this.#evaluate(votes, mayApproveByVote, found, state);
  }

  /** The first valid denial, from the stores, so that no list delays the end of access. */
  async storedDenial(request: RequestView, template: TemplateView, signal: AbortSignal): Promise<VoteView | undefined> {
    const judged = await this.#judge(
      this.#storedDenials(request),
      this.#foundRequest(request),
      templateState(template),
      signal,
    );
    return denialIn(judged)?.vote;
  }

  /** The request and the template may have been deleted. */
  async judgeReview(review: VotedReview, signal: AbortSignal): Promise<JudgedVote[]> {
    const { namespace, template: templateName, requestUid: uid } = review;
    const template = this.#deps.templates.get(keyOf({ namespace, name: templateName }));
    const state = template ? templateState(template) : ({ found: false } as const);
    const votes = await this.#listLive({ namespace, uid, about: 'Review' }, signal);
    const judged = await this.#judge(votes, votedReview(review), state, signal);
    // A vote about access is younger than its request, which is certified. A review may be older.
    return Promise.all(
      judged.map(async ({ vote, violation }) => ({
        vote,
        violation: violation ?? (await this.#uncertified(vote, signal)),
      })),
    );
  }

  /** Rejects in a gap. */
  async #uncertified({ createdAtMs }: VoteView, signal: AbortSignal): Promise<Violation | undefined> {
    const proof = await this.#deps.policies.certify(createdAtMs, signal);
    if (proof === 'gap') throw new CodedError('PoliciesMissing', policiesAwaited);
    return proof === 'certified' ? undefined : voteUncertified;
  }

  #storedDenials(request: RequestView): VoteView[] {
    return this.#stored(request, 'Access').filter(({ spec }) => spec.decision === 'Deny');
  }

  /** Oldest first. */
  #stored({ uid }: RequestView, about: string): VoteView[] {
    return oldestFirst(this.#deps.store.byIndex(byRequest, uid).filter(({ spec }) => isAbout(spec, about)));
  }

  /** Oldest first. */
  async #listLive({ namespace, uid, about }: VoteQuery & { about: string }, signal: AbortSignal): Promise<VoteView[]> {
    const votes = await this.#lists.ask(namespace, { namespace, uid }, signal);
    return oldestFirst(votes.filter(({ requestUid, spec }) => requestUid === uid && isAbout(spec, about)));
  }

  #foundRequest(request: RequestView): FoundRequest {
    const { uid, spec } = request;
    return {
      found: true,
      uid,
      templateName: spec.templateName,
      requester: spec.requester,
      emergency: spec.emergency === true,
      extensions: spec.extensions?.length ?? 0,
      decidedExtensions: decidedExtensions(request).length,
      ended: false,
    };
  }

  /**
   * As the API server has it. If the store lags behind, the generation is NaN: no approval counts.
   */
  async #currentState(template: TemplateView, signal: AbortSignal): Promise<TemplateState> {
    const current = await this.#templates.ask(template.key, template, signal);
    if (!current) return { found: false };
    const { uid = '', generation = 0 } = current.metadata;
    const isStored = uid === template.uid && generation === template.generation;
    return { ...templateState(template), uid, generation: isStored ? generation : Number.NaN };
  }

  async #judge(
    votes: readonly VoteView[],
    request: FoundRequest,
    state: TemplateState,
    signal: AbortSignal,
  ): Promise<JudgedVote[]> {
    return this.#evaluate(votes, await this.#approvePermissions(votes, request, signal), request, state);
  }

  #evaluate(
    votes: readonly VoteView[],
    mayApproveByVote: ReadonlyMap<VoteView, boolean>,
    request: FoundRequest,
    template: TemplateState,
  ): JudgedVote[] {
    return votes.map((vote) => {
      const { namespace, spec } = vote;
      const mayApprove = mayApproveByVote.get(vote);
      if (!spec.voter || mayApprove === undefined) return { vote, violation: misnamed };
      const input = { namespace, voter: spec.voter, spec, request, template, mayApprove };
      return { vote: this.#withoutUncertifiedName(vote), violation: firstViolation(votePolicy, input) };
    });
  }

  /** A denial counts in any case, and names no person whom nothing certifies. */
  #withoutUncertifiedName(vote: VoteView): VoteView {
    const { decision, voter: _, onBehalfOf: __, ...spec } = vote.spec;
    if (decision !== 'Deny' || this.#deps.policies.assess(vote.createdAtMs) === 'certified') return vote;
    return { ...vote, spec: { ...spec, decision } };
  }

  async #approvePermissions(
    votes: readonly VoteView[],
    { uid, templateName: name }: FoundRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<VoteView, boolean>> {
    const { templateKind: kind } = this.#deps;
    const answers = votes.map(async (vote) => {
      const { namespace, spec } = vote;
      if (!spec.voter || !isNamed(vote, spec.voter.username, uid)) return [];
      const mayApprove = await this.#approvePermission.mayApprove(spec.voter, { kind, namespace, name }, signal);
      return [[vote, mayApprove] as const];
    });
    return new Map((await Promise.all(answers)).flat());
  }
}

type VotedReview = Pick<OwedReview, 'namespace' | 'template' | 'requestUid' | 'user' | 'userUid'>;

/** The name makes a second vote of the same person about the same thing impossible. */
const isNamed = ({ name, spec }: VoteView, username: string, requestUid: string): boolean =>
  spec.request.uid === requestUid && name === voteName(requestUid, username, spec);

type FoundRequest = Extract<VotedRequest, { found: true }>;

/** A denial of the review denies the access: who finds it unjustified expects it to end. */
const isAbout = ({ about: voted, decision }: VoteView['spec'], about: string): boolean =>
  voted === about || (about === 'Access' && voted === 'Review' && decision === 'Deny');

/** Of the votes of one second, a denial is the last, because it is final. */
const oldestFirst = (votes: readonly VoteView[]): VoteView[] =>
  [...votes].sort((a, b) => a.createdAtMs - b.createdAtMs || denialsOf(a) - denialsOf(b) || (a.uid < b.uid ? -1 : 1));

const denialsOf = ({ spec }: VoteView): number => (spec.decision === 'Deny' ? 1 : 0);

/** Without a limit: forged votes could fill the page and hide a denial. */
async function listVotes(
  client: Client,
  queries: Readonly<[VoteQuery, ...VoteQuery[]]>,
  signal: AbortSignal,
): Promise<readonly VoteView[]> {
  const uids = new Set(queries.map(({ uid }) => uid));
  const options = {
    namespace: queries[0].namespace,
    labelSelector: `${requestLabel} in (${[...uids].join(',')})`,
    signal,
  };
  const { items } = await client.list(accessVotes, options);
  return items.flatMap((item) => viewVote({ ...item, kind: accessVotes.kind }) ?? []);
}

export const approvalsOf = (judged: readonly JudgedVote[]): Approval[] =>
  judged.flatMap(({ vote: { uid, createdAtMs, spec }, violation }) =>
    violation === undefined && spec.decision === 'Approve' && spec.voter
      ? [{ uid, createdAtMs, voter: spec.voter, maxMs: maxOf(spec.max) }]
      : [],
  );

export const denialIn = (judged: readonly JudgedVote[]): JudgedVote | undefined =>
  judged.find(({ vote, violation }) => violation === undefined && vote.spec.decision === 'Deny');

function maxOf(max: string | undefined): number | undefined {
  const parsed = max === undefined ? undefined : parseGoDuration(max);
  return parsed && 'ns' in parsed ? toMilliseconds(parsed.ns) : undefined;
}

const misnamed: Violation = {
  code: 'MissingIdentity',
  message:
    'the vote has not the voter and name that the webhook of drawbridge writes, so it never counts; vote again; if that is ignored too, ask an administrator to apply the webhook configurations',
  field: 'spec.voter',
  status: 403,
};
