import { showName } from '../../access/policy/names.ts';
import { explain, firstViolation } from '../../access/policy/policy.ts';
import type { TemplateState } from '../../access/policy/request-policy.ts';
import { type VoteInput, votePolicy } from '../../access/policy/vote-policy.ts';
import { explanationLines } from '../../access/policy/warnings.ts';
import { accessVoteKind, type VoteSpec } from '../../api/access/access-vote.ts';
import { accessOfRequest } from '../../api/access/kinds.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

type Ports = Pick<AdmissionPorts, 'votedRequest' | 'templateState' | 'mayApprove'>;

/** Validating webhook of votes. The leader checks a vote again whenever it counts it. */
export function validateVote(ports: Ports): Handler {
  return {
    decide: (review, signal) => (review.operation === 'CREATE' ? validate(review, ports, signal) : allow),
  };
}

async function validate(review: Review, ports: Ports, signal: AbortSignal): Promise<Decision> {
  const { namespace, user, dryRun } = review;
  const read = readBySchema<VoteSpec>(accessVoteKind.structural.spec, own(review.object, 'spec'), 'spec');
  if (!read.ok) return invalidSpec(read.errors);
  const spec = read.value;
  const foreignVoter = foreignVoterDenial(review, spec);
  if (foreignVoter) return foreignVoter;
  const request = await ports.votedRequest(spec.request, namespace, signal);
  const { kind } = accessOfRequest(spec.request.kind).template.resource;
  const template: TemplateState = request.found
    ? await ports.templateState(kind, namespace, request.templateName, signal)
    : { found: false };
  const mayApprove =
    request.found &&
    (template.found || spec.about === 'Review') &&
    (await ports.mayApprove(user, { kind, namespace, name: request.templateName }, signal));
  const voter = { username: user.username, uid: user.uid, groups: user.groups };
  const input: VoteInput = { namespace, voter, spec, request, template, mayApprove };
  const details = {
    request: spec.request.name,
    ...(request.found ? { template: request.templateName } : {}),
    ...(template.found ? { templateUid: template.uid, templateGeneration: template.generation } : {}),
    ...(spec.reason === undefined ? {} : { reason: spec.reason }),
  };
  const warnings = dryRun ? explanationLines(explain(votePolicy, input)) : [];
  const violation = firstViolation(votePolicy, input);
  if (violation) return { ...deny(violation, details), warnings };
  return {
    details: { ...details, message: describeVote(spec) },
    warnings,
    opensAccess: spec.decision === 'Approve',
  };
}

const describeVote = ({ decision, about, max, onBehalfOf }: VoteSpec): string =>
  [
    `${decision} ${about}`,
    ...(max === undefined ? [] : [`for at most ${max}`]),
    ...(onBehalfOf === undefined ? [] : [`on behalf of ${showName(onBehalfOf)}`]),
  ].join(', ');

function foreignVoterDenial({ user }: Review, { voter }: VoteSpec): Decision | undefined {
  if (voter?.username === user.username && voter.uid === user.uid) return undefined;
  return deny({
    code: 'MissingIdentity',
    message: 'spec.voter is not the caller; omit it, and check that the mutating webhook of drawbridge is installed',
    field: 'spec.voter',
    status: 403,
  });
}
