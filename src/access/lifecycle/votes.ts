import { accessVotes, type VoteAttestation } from '../../api/access/access-vote.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { requestLabel } from '../../api/access/names.ts';
import { type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { SharedCalls } from '../../kit/shared-calls.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { ApprovePermission, templateState } from '../admission-reads.ts';
import type { OwedReview } from '../emergency/owed-reviews.ts';
import { votedReview } from '../emergency/owed-reviews.ts';
import type { Approval } from '../policy/opening.ts';
import { firstViolation, type Violation } from '../policy/policy.ts';
import type { TemplateState } from '../policy/request-policy.ts';
import { type VotedRequest, voteName, votePolicy } from '../policy/vote-policy.ts';
import type { Signer } from '../signing/signer.ts';
import { byRequest } from '../stores/access-stores.ts';
import type { RequestView, TemplateView } from '../stores/access-views.ts';
import { type VoteView, viewVote } from '../stores/vote-view.ts';
import { decidedExtensions } from './request-ends.ts';

/**
 * By how much the creationTimestamp of a vote may precede the time of its signature, milliseconds: the clocks of the API server and of our
 * webhook differ, and a creationTimestamp has whole seconds.
 */
const skewMs = 2000;
/** By how much the creationTimestamp of a vote may follow the time of its signature, milliseconds. */
const validMs = 10_000;

/** A vote after the server verified it. */
export interface JudgedVote {
  readonly vote: VoteView;
  /** Why the vote does not count; undefined if it counts. */
  readonly violation: Violation | undefined;
}

interface VotesDeps {
  readonly store: Store<VoteView>;
  readonly templateKind: TemplateKind;
  readonly templateResource: Resource;
  readonly templates: Store<TemplateView>;
  readonly client: Client;
  readonly signer: Signer;
}

/** A decision that votes make. */
interface VoteQuestion {
  /** `spec.about` of its votes. */
  readonly about: string;
  /** Minimum number of approvals that can decide it; with 0, `judge` always reads the votes from the API server. */
  readonly needed: number;
}

/** The request whose votes to read from the API server. */
interface VoteQuery {
  readonly namespace: string;
  /** The uid of the request. */
  readonly uid: string;
}

/** Reads and verifies the votes of requests. Decisions that are made at the same time share their reads. */
export class Votes {
  readonly #deps: VotesDeps;
  /** By namespace: lists the votes of all requests that wait for the list. */
  readonly #lists: SharedCalls<VoteQuery, readonly VoteView[]>;
  /** By key: reads a template. */
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

  /** Whether the store has a vote that denies the access. It may be invalid: `judge` verifies it. */
  mayBeDenied(request: RequestView): boolean {
    return this.#storedDenials(request).length > 0;
  }

  /**
   * All votes on the request about `about`, oldest first; for `Access`, also denials of the review. Verifies each one now: our webhook
   * signed it, and it satisfies `votePolicy`, with a SubjectAccessReview for its voter. If the store has enough votes for a decision, reads
   * the votes and the version of the template live, because a store that lags behind could miss a denial or an edit. If the store has fewer
   * approvals than `needed` and no denial, no decision is possible, and the votes of the store suffice. Rejects as the client does, and if
   * the keys cannot be read.
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
    const signed = await this.#signedVotes(votes, found, signal);
    // Read the template and the permissions after the votes: an edit of the template voids all approvals that were created before it, and a
    // voter who has lost the verb `approve` no longer counts.
    const [state, mayApproveByVote] = await Promise.all([
      this.#currentState(template, signal),
      this.#approvePermissions(signed, found, signal),
    ]);
    return this.#evaluate(votes, mayApproveByVote, found, state);
  }

  /**
   * The first valid denial of the access; undefined if there is none. Uses the votes and the template of the stores, so that no list delays
   * the end of access. Calls the API server only for the permissions of the voters, and for the keys if the cached ones do not verify a
   * signature. A denial counts for every version of the template. Rejects as the client does, and if the keys cannot be read.
   */
  async storedDenial(request: RequestView, template: TemplateView, signal: AbortSignal): Promise<VoteView | undefined> {
    const judged = await this.#judge(
      this.#storedDenials(request),
      this.#foundRequest(request),
      templateState(template),
      signal,
    );
    return denialIn(judged)?.vote;
  }

  /** All votes about the review of an emergency, as `judge` returns them. The request and the template may have been deleted. */
  async judgeReview(review: VotedReview, signal: AbortSignal): Promise<JudgedVote[]> {
    const { namespace, template: templateName, requestUid: uid } = review;
    const template = this.#deps.templates.get(keyOf({ namespace, name: templateName }));
    const state = template ? templateState(template) : ({ found: false } as const);
    const votes = await this.#listLive({ namespace, uid, about: 'Review' }, signal);
    return this.#judge(votes, votedReview(review), state, signal);
  }

  #storedDenials(request: RequestView): VoteView[] {
    return this.#stored(request, 'Access').filter(({ spec }) => spec.decision === 'Deny');
  }

  /** The votes of the store about `about`, oldest first. */
  #stored({ uid }: RequestView, about: string): VoteView[] {
    return oldestFirst(this.#deps.store.byIndex(byRequest, uid).filter(({ spec }) => isAbout(spec, about)));
  }

  /** All votes about `about`, oldest first, as the API server has them now. */
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
      decidedExtensions: decidedExtensions(request, this.#deps.signer).length,
      ended: false,
    };
  }

  /**
   * The state of the template in the store, with the uid and the generation that the API server has now; `found: false` if the API server
   * has none. If the store lags behind an edit, the generation is NaN, so that no approval counts until the store has the edit. A denial
   * counts for every version.
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
    const signed = await this.#signedVotes(votes, request, signal);
    return this.#evaluate(votes, await this.#approvePermissions(signed, request, signal), request, state);
  }

  /**
   * Evaluates `votePolicy` for each vote. `mayApproveByVote`: for each vote that our webhook signed, whether its voter holds the verb
   * `approve`. Other votes do not count.
   */
  #evaluate(
    votes: readonly VoteView[],
    mayApproveByVote: ReadonlyMap<VoteView, boolean>,
    request: FoundRequest,
    template: TemplateState,
  ): JudgedVote[] {
    return votes.map((vote) => {
      const { namespace, spec } = vote;
      const mayApprove = mayApproveByVote.get(vote);
      if (!spec.voter || mayApprove === undefined) return { vote, violation: unsigned };
      const input = { namespace, voter: spec.voter, spec, request, template, mayApprove };
      return { vote, violation: firstViolation(votePolicy, input) };
    });
  }

  /** By vote: whether its voter holds the verb `approve` on the template of the request now. */
  async #approvePermissions(
    votes: readonly SignedVote[],
    { templateName: name }: FoundRequest,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<VoteView, boolean>> {
    const { templateKind: kind } = this.#deps;
    const answers = votes.map(async ({ vote, attestation: { namespace, voter } }) => {
      const mayApprove = await this.#approvePermission.mayApprove(voter, { kind, namespace, name }, signal);
      return [vote, mayApprove] as const;
    });
    return new Map(await Promise.all(answers));
  }

  /** The votes that our webhook signed for this request when they were created. */
  async #signedVotes(votes: readonly VoteView[], request: FoundRequest, signal: AbortSignal): Promise<SignedVote[]> {
    const attested = votes.flatMap((vote) => {
      const attestation = attestationOf(vote, request);
      return attestation ? [{ vote, attestation, signature: vote.spec.voter?.signature }] : [];
    });
    const areOurs = await this.#deps.signer.areOurVotes(attested, signal);
    return attested.filter((_, index) => areOurs[index]);
  }
}

/** The emergency that votes about a review name. */
type VotedReview = Pick<OwedReview, 'namespace' | 'template' | 'requestUid' | 'user' | 'userUid'>;

interface SignedVote {
  readonly vote: VoteView;
  readonly attestation: VoteAttestation;
}

/** What our webhook must have signed if the vote is genuine; undefined if the vote is for another request, or its name or age is wrong. */
function attestationOf(
  { namespace, name, spec, createdAtMs }: VoteView,
  request: FoundRequest,
): VoteAttestation | undefined {
  const { voter } = spec;
  if (!voter?.signature || spec.request.uid !== request.uid) return undefined;
  if (name !== voteName(request.uid, voter.username, spec)) return undefined;
  const age = createdAtMs - (parseTime(voter.time) ?? Number.NaN);
  return age >= -skewMs && age <= validMs ? { namespace, name, spec, voter } : undefined;
}

type FoundRequest = Extract<VotedRequest, { found: true }>;

/**
 * Whether the vote is part of the decision `about`. A denial of the review of an emergency also denies its access: a person who finds the
 * emergency unjustified while its access is open expects it to end.
 */
const isAbout = ({ about: voted, decision }: VoteView['spec'], about: string): boolean =>
  voted === about || (about === 'Access' && voted === 'Review' && decision === 'Deny');

/** Of the votes of one second, a denial is the last, because it is final. */
const oldestFirst = (votes: readonly VoteView[]): VoteView[] =>
  [...votes].sort((a, b) => a.createdAtMs - b.createdAtMs || denialsOf(a) - denialsOf(b) || (a.uid < b.uid ? -1 : 1));

const denialsOf = ({ spec }: VoteView): number => (spec.decision === 'Deny' ? 1 : 0);

/** Lists the votes on requests of one namespace. Sets no limit, because forged votes could fill the page and hide a denial. */
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

/** The valid approvals. */
export const approvalsOf = (judged: readonly JudgedVote[]): Approval[] =>
  judged.flatMap(({ vote: { uid, createdAtMs, spec }, violation }) =>
    violation === undefined && spec.decision === 'Approve' && spec.voter
      ? [{ uid, createdAtMs, voter: spec.voter, maxMs: maxOf(spec.max) }]
      : [],
  );

/** The first valid denial. */
export const denialIn = (judged: readonly JudgedVote[]): JudgedVote | undefined =>
  judged.find(({ vote, violation }) => violation === undefined && vote.spec.decision === 'Deny');

function maxOf(max: string | undefined): number | undefined {
  const parsed = max === undefined ? undefined : parseGoDuration(max);
  return parsed && 'ns' in parsed ? toMilliseconds(parsed.ns) : undefined;
}

const unsigned: Violation = {
  code: 'StampInvalid',
  message:
    'the webhook of drawbridge did not sign this vote for this request when it was created; it never counts, and its voter cannot repeat it; ask another approver to vote, or the requester to create a new request; if those votes are ignored too, ask an administrator to apply the webhook configurations, and to synchronize the clocks of the API server and of drawbridge',
  field: 'spec.voter',
  status: 403,
};
