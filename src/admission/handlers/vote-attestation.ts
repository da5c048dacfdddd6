import { showName } from '../../access/policy/names.ts';
import type { TemplateState } from '../../access/policy/request-policy.ts';
import { awaitedDecisions, countsForEveryVersion, missingObject, voteName } from '../../access/policy/vote-policy.ts';
import { accessVoteKind, type VoteSpec } from '../../api/access/access-vote.ts';
import { accessOfRequest } from '../../api/access/kinds.ts';
import { requestLabel } from '../../api/access/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { formatTime } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Review } from '../codec.ts';
import { allow, type Decision, type Denial, deny, type Handler, invalidSpec } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { AdmissionPorts } from '../ports.ts';

type Ports = Pick<AdmissionPorts, 'clock' | 'votedRequest' | 'votedAtMs' | 'templateState'>;

/**
 * Mutating webhook of votes: names the vote (`voteName`), sets the voter, the request, and the
 * version of the template, and makes the request the owner. Denies a second vote, which the API
 * server would reject without mentioning the first.
 */
export function attestVote(ports: Ports): Handler {
  return {
    decide: (review, signal) => (review.operation === 'CREATE' ? attest(review, ports, signal) : allow),
  };
}

async function attest(review: Review, ports: Ports, signal: AbortSignal): Promise<Decision> {
  const { object, namespace, user } = review;
  if (user.username === '') {
    return deny({
      code: 'MissingIdentity',
      message: 'this call has no authenticated user; a vote needs a voter; log in and vote again',
      status: 403,
    });
  }
  const sent = own(object, 'spec');
  if (!isRecord(sent))
    return deny({ code: 'InvalidObject', message: 'spec must be an object', field: 'spec', status: 422 });
  const { voter: _, template: sentTemplate, ...fieldsOfVoter } = sent;
  const read = readBySchema<VoteSpec>(accessVoteKind.structural.spec, fieldsOfVoter, 'spec');
  if (!read.ok) return invalidSpec(read.errors);
  const { request, about } = read.value;
  const voted = await ports.votedRequest(request, namespace, signal);
  const { kind } = accessOfRequest(request.kind).template.resource;
  const template: TemplateState = voted.found
    ? await ports.templateState(kind, namespace, voted.templateName, signal)
    : { found: false };
  const missing = missingObject({ namespace, spec: read.value, request: voted, template });
  if (missing || !voted.found) return missing ? deny(missing, { request: request.name }) : allow;
  const { uid } = voted;
  // A deleted template does not prevent a review, which still needs the verb `approve` on its name.
  const deleted = about === 'Review' ? { uid: 'deleted', generation: 0 } : undefined;
  // The validating webhook denies an approval of another version than the current one.
  const seen = template.found && !countsForEveryVersion(read.value) ? versionIn(sentTemplate) : undefined;
  const version = seen ?? (template.found ? { uid: template.uid, generation: template.generation } : deleted);
  const spec: VoteSpec = {
    ...read.value,
    request: { ...request, uid },
    ...(version ? { template: { kind, name: voted.templateName, ...version } } : {}),
  };
  const name = voteName(uid, user.username, spec);
  const votedAtMs = ports.votedAtMs({ namespace, name }, user.username);
  if (votedAtMs !== undefined)
    return deny(
      alreadyVoted(user.username, spec, votedAtMs, voted.ended, awaitedDecisions({ spec, request: voted, template })),
      { request: request.name },
    );
  const voter = {
    username: user.username,
    uid: user.uid,
    groups: [...user.groups],
    time: formatTime(ports.clock.now()),
  };
  const { resource } = accessOfRequest(request.kind).request;
  const patch = new PatchBuilder(object)
    .set(['metadata', 'name'], name)
    .set(['metadata', 'labels', requestLabel], uid)
    .remove(['metadata', 'finalizers'])
    .set(['spec'], { ...spec, voter });
  const owner = { apiVersion: apiVersionOf(resource), kind: resource.kind, name: request.name, uid };
  // An owner that is gone would delete the vote. The leader deletes it after the review.
  if (voted.isDeleted) patch.remove(['metadata', 'ownerReferences']);
  else patch.set(['metadata', 'ownerReferences'], [owner]);
  return { patch: patch.ops };
}

/** `awaited`: the values of `spec.about` that the request waits for. */
function alreadyVoted(
  username: string,
  { request, about, decision }: VoteSpec,
  votedAtMs: number,
  ended: boolean,
  awaited: readonly string[],
): Denial {
  const others = awaited.filter((one) => one !== about);
  const toVoteOnOthers = others.length === 0 ? '' : `to vote on what waits, set spec.about to ${others.join(' or ')}; `;
  const remedy =
    decision === 'Deny' || about === 'Review'
      ? 'no second vote is needed'
      : ended
        ? 'the request has ended, so it needs no vote'
        : about === 'Access'
          ? `${toVoteOnOthers}to deny the access, or to end it if it is open, vote with spec.decision Deny`
          : `${toVoteOnOthers}while ${about} waits, you can still refuse it with spec.decision Deny`;
  return {
    code: 'AlreadyVoted',
    message:
      `${showName(username)} has already voted on ${request.kind} ${showName(request.name)} at ${formatTime(votedAtMs)}, with spec.about ${about} ` +
      `and spec.decision ${decision}; such a vote counts once, and cannot be changed; ${remedy}`,
    status: 409,
  };
}

function versionIn(template: unknown): { readonly uid: string; readonly generation: number } | undefined {
  const [uid, generation] = [own(template, 'uid'), own(template, 'generation')];
  return typeof uid === 'string' && typeof generation === 'number' ? { uid, generation } : undefined;
}
