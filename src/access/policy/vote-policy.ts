import type { VoteSpec } from '../../api/access/access-vote.ts';
import type { RequestKind } from '../../api/access/kinds.ts';
import { sha256Hex } from '../../kit/canonical-json.ts';
import { quote } from '../../kit/errors.ts';
import { parseGoDuration } from '../../kit/go-duration.ts';
import { listNames, showName } from './names.ts';
import { type Check, type RuleBook, refuse, type Violation } from './policy.ts';
import type { Caller, TemplateState } from './request-policy.ts';
import { fits } from './vote-count.ts';

export type VotedRequest =
  /** `otherKind`: a request of this other kind has the name. */
  | { readonly found: false; readonly otherKind?: RequestKind }
  | {
      readonly found: true;
      readonly uid: string;
      readonly templateName: string;
      readonly requester: Pick<Caller, 'username' | 'uid'> | undefined;
      readonly emergency: boolean;
      /** Reviewed by another person; a later review would not count. At admission only. */
      readonly reviewed?: true;
      /** A later approval would not count. At admission only. */
      readonly isGranted?: true;
      readonly extensions: number;
      /** How many extensions the server granted or refused. */
      readonly decidedExtensions: number;
      /** Denied, revoked, deleted, or its access has ended. */
      readonly ended: boolean;
      /** Only the record of its emergency remains. */
      readonly isDeleted?: true;
    };

export interface VoteInput {
  readonly namespace: string;
  /** The caller at admission; in the leader, `spec.voter`. */
  readonly voter: Caller;
  readonly spec: VoteSpec;
  readonly request: VotedRequest;
  readonly template: TemplateState;
  /** The verb `approve` on the template. At admission, false if what it needs does not exist. */
  readonly mayApprove: boolean;
}

/**
 * The API server rejects a second vote of this name: one Deny of a username for each `spec.about`,
 * and one Approve for each version of the template, or for all of them in a review.
 */
export function voteName(
  requestUid: string,
  username: string,
  { about, decision, template }: Pick<VoteSpec, 'about' | 'decision' | 'template'>,
): string {
  const version = countsForEveryVersion({ about, decision }) ? [] : [template?.uid, template?.generation];
  return `vote-${sha256Hex(JSON.stringify([requestUid, username, about, decision, ...version])).slice(0, 32)}`;
}

/** A denial, and the review of an emergency, outlast changes of the template. */
export const countsForEveryVersion = ({ about, decision }: Pick<VoteSpec, 'about' | 'decision'>): boolean =>
  decision === 'Deny' || about === 'Review';

type NamedObjects = Pick<VoteInput, 'namespace' | 'spec' | 'request' | 'template'>;

const requestExists = ({ namespace, spec, request }: NamedObjects): Violation | undefined => {
  const { kind, name, uid } = spec.request;
  if (request.found && (uid === undefined || uid === request.uid)) return undefined;
  const other = request.found ? `with uid ${quote(uid ?? '')} ` : '';
  const settled =
    spec.about === 'Review'
      ? `, and no emergency of that name${uid === undefined ? '' : ' and uid'} waits for a review (it may have been reviewed already)`
      : '';
  const remedy =
    !request.found && request.otherKind
      ? `the request of this name is of kind ${request.otherKind}; set spec.request.kind to ${request.otherKind}`
      : `to list ${settled === '' ? 'those that do' : 'the existing requests'}: kubectl get ${kind.toLowerCase()}s -n ${namespace}`;
  return {
    code: 'RequestNotFound',
    message: `${kind} ${quote(name)} ${other}does not exist in namespace ${quote(namespace)}${settled}; ${remedy}`,
    field: 'spec.request',
    status: 404,
  };
};

/** An emergency can be reviewed after it has ended, and after its request was deleted. */
const requestIsOpen: Check<VoteInput> = ({ spec, request }) => {
  if (!request.found || !request.ended || spec.about === 'Review') return undefined;
  return refuse(
    'NothingToDecide',
    `${spec.request.kind} ${showName(spec.request.name)} has ended; vote on a request that has not ended`,
    'spec.request',
    403,
  );
};

const templateExists = ({ spec, request, template }: NamedObjects): Violation | undefined => {
  if (!request.found || template.found || spec.about === 'Review') return undefined;
  return refuse(
    'TemplateNotFound',
    `template ${showName(request.templateName)} of the request no longer exists; ask the requester to create a request that names another template`,
    'spec.request',
    404,
  );
};

/** The mutating webhook denies such a vote, because it cannot sign it. */
export const missingObject = (input: NamedObjects): Violation | undefined =>
  requestExists(input) ?? templateExists(input);

/** An approval counts for the current version of the template; other votes for every one. */
const templateIsCurrent: Check<VoteInput> = ({ spec, request, template }) => {
  const voted = spec.template;
  if (!request.found || !template.found || countsForEveryVersion(spec)) return undefined;
  if (!voted)
    return refuse('TemplateChanged', 'the vote names no version of the template; vote again', 'spec.template', 403);
  const isSame =
    voted.name === request.templateName && voted.uid === template.uid && voted.generation === template.generation;
  if (isSame) return undefined;
  const version = (generation: number): string =>
    Number.isNaN(generation) ? 'a newer version' : `generation ${generation}`;
  return refuse(
    'TemplateChanged',
    `the vote is for ${version(voted.generation)} of template ${showName(voted.name)} (uid ${voted.uid}), ` +
      `but the request uses ${version(template.generation)} of template ${showName(request.templateName)} (uid ${template.uid}); read that template, then vote again`,
    'spec.template',
    403,
  );
};

/** Otherwise the API server would store a vote that never counts, and its voter would not know. */
const decisionIsAwaited: Check<VoteInput> = (input) => {
  const { about } = input.spec;
  const { request } = input;
  if (!request.found || !templateIsKnown(input) || awaitedDecisions(input).includes(about)) return undefined;
  const why =
    about === 'Review' && request.reviewed
      ? 'the emergency has been reviewed already'
      : 'the request does not wait for that decision';
  return refuse(
    'NothingToDecide',
    `spec.about is ${quote(about)}, and ${why}; ${decisionRemedy(input)}`,
    'spec.about',
    422,
  );
};

/**
 * Until the end: `Access`, for an Approve only before the grant and if required, and undecided
 * extensions that need approvals. Also later: the first review.
 */
export function awaitedDecisions({
  spec: { decision },
  request,
  template,
}: Pick<VoteInput, 'spec' | 'request' | 'template'>): string[] {
  if (!request.found) return [];
  const review = request.emergency && !request.reviewed ? ['Review'] : [];
  if (!template.found || request.ended) return review;
  const { approvals, extension } = template.spec.accessConfig;
  const access = decision === 'Deny' || (approvals && !request.isGranted) ? ['Access'] : [];
  const asked = approvals && extension?.approvals === 'Same' ? request.extensions : 0;
  const extensions = Array.from({ length: asked }, (_, index) => `Extension-${index + 1}`);
  return [...access, ...extensions.slice(request.decidedExtensions), ...review];
}

function decisionRemedy(input: VoteInput): string {
  if (!templateIsKnown(input)) return 'set spec.about to a decision that the request waits for';
  const { request, template, spec } = input;
  const awaited = awaitedDecisions(input);
  // A Deny about `Access` is more than the voter asked for, so the remedy says so.
  const others = awaited.filter((about) => spec.decision === 'Approve' || about !== 'Access');
  const remedies = [
    ...(others.length > 0 ? [`set spec.about to ${anyOf.format(others)} to decide that instead`] : []),
    ...(others.length < awaited.length ? ['to deny the request or end its access, set spec.about to Access'] : []),
  ];
  if (remedies.length > 0) return remedies.join('; ');
  return request.found && !request.ended && template.found
    ? 'no vote is needed; to deny the request or end its access, set spec.decision to Deny and omit spec.about'
    : 'no vote is needed';
}

const anyOf = new Intl.ListFormat('en', { type: 'disjunction' });

/**
 * By username and uid, so that no one votes under a second name. Without a requester, denies all.
 */
const voterIsAnotherPerson: Check<VoteInput> = ({ voter, request }) => {
  if (!request.found) return undefined;
  const { requester } = request;
  const sameUid = requester !== undefined && requester.uid !== '' && requester.uid === voter.uid;
  if (requester && requester.username !== voter.username && !sameUid) return undefined;
  const message = requester
    ? `${showName(voter.username)} is the requester${requester.username === voter.username ? '' : ` (by uid; the request names ${showName(requester.username)})`}; another person must decide`
    : 'the request names no requester, so the server cannot check that the voter is another person; ask the requester to create a new request, and an administrator to check that the mutating webhook of drawbridge, which sets the requester, is installed';
  return refuse('SelfApproval', message, 'spec.request', 403);
};

const isServiceAccount = ({ voter }: VoteInput): boolean => voter.username.startsWith('system:serviceaccount:');

const voterIsAPerson: Check<VoteInput> = (input) => {
  const { voter, template } = input;
  if (!isServiceAccount(input) || !templateIsKnown(input)) return undefined;
  if (template.found && template.spec.accessConfig.approvals?.serviceAccounts) return undefined;
  return refuse(
    'NotApprover',
    `${showName(voter.username)} is a ServiceAccount; without accessConfig.approvals.serviceAccounts in the template, only votes of people count; vote as a person`,
    'spec.request',
    403,
  );
};

const voterMayApprove: Check<VoteInput> = (input) => {
  const { namespace, voter, request, mayApprove } = input;
  if (!request.found || !templateIsKnown(input) || mayApprove) return undefined;
  return refuse(
    'NotApprover',
    `${showName(voter.username)} does not hold the verb approve on template ${showName(request.templateName)} in namespace ${showName(namespace)}; ` +
      'ask an administrator to bind the ClusterRole drawbridge-approver',
    'spec.request',
    403,
  );
};

/** Otherwise the voter would believe that it counts. Denials and reviews need no group. */
const voterIsInAGroup: Check<VoteInput> = ({ voter, spec, template, request }) => {
  const approvals = template.found ? template.spec.accessConfig.approvals : undefined;
  if (!request.found || !approvals || countsForEveryVersion(spec)) return undefined;
  if (approvals.all.some((entry) => fits({ voter }, entry))) return undefined;
  const needed = approvals.all.map(({ name, groups = [] }) => `${name}: ${listNames(groups)}`).join('; ');
  return refuse(
    'NotApprover',
    `an approval of ${showName(voter.username)} would not count: the user is in none of the groups that template ${showName(request.templateName)} needs (${needed}); ` +
      'ask members of these groups to approve; you can only deny',
    'spec.decision',
    403,
  );
};

const maxIsADuration: Check<VoteInput> = ({ spec: { max } }) => {
  if (max === undefined) return undefined;
  const parsed = parseGoDuration(max);
  if ('error' in parsed) return refuse('InvalidDuration', `spec.max ${parsed.error}`, 'spec.max', 422);
  if (parsed.ns >= 1_000_000_000n) return undefined;
  return refuse(
    'InvalidDuration',
    `spec.max must be at least 1s, not ${quote(max)}; write a Go duration, for example 20m`,
    'spec.max',
    422,
  );
};

const requestIsFound = ({ request }: VoteInput): boolean => request.found;

/** The review of an emergency does not need the template. */
const templateIsKnown = ({ spec, request, template }: VoteInput): boolean =>
  request.found && (template.found || spec.about === 'Review');

/** The webhook checks it for a new vote; the leader whenever it counts the vote. */
export const votePolicy: RuleBook<VoteInput> = {
  request: {
    requirement: 'the request exists',
    check: requestExists,
    remedy: () => 'name a request of this namespace',
  },
  open: {
    requirement: 'the request has not ended',
    check: requestIsOpen,
    remedy: () => 'vote on a request that has not ended',
    applies: requestIsFound,
  },
  template: {
    requirement: 'the template exists',
    check: templateExists,
    remedy: () => 'ask the requester to use another template',
    applies: requestIsFound,
  },
  current: {
    requirement: 'the template has not changed since the vote',
    check: templateIsCurrent,
    remedy: () => 'create the vote again',
    applies: templateIsKnown,
  },
  question: {
    requirement: 'the request waits for this decision',
    check: decisionIsAwaited,
    remedy: decisionRemedy,
    applies: templateIsKnown,
  },
  'other-person': {
    requirement: 'the voter is not the requester',
    check: voterIsAnotherPerson,
    remedy: () => 'ask another person to decide',
    applies: requestIsFound,
  },
  person: {
    requirement: 'the voter is a person, or the template counts ServiceAccounts',
    check: voterIsAPerson,
    remedy: () => 'vote as a person',
    applies: (input) => !isServiceAccount(input) || templateIsKnown(input),
  },
  approver: {
    requirement: 'the voter holds the verb approve on the template',
    check: voterMayApprove,
    remedy: () => 'ask an administrator for the verb approve on the template',
    applies: templateIsKnown,
  },
  group: {
    requirement: 'a voter who approves is in a group that the template needs',
    check: voterIsInAGroup,
    remedy: () => 'ask a member of such a group to approve; you can only deny',
    applies: templateIsKnown,
  },
  max: {
    requirement: 'spec.max, if set, is a Go duration of at least 1s',
    check: maxIsADuration,
    remedy: () => 'write, for example, 20m',
  },
};
