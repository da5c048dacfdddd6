import { maxExtensions } from '../../api/access/access-config.ts';
import type { AccessSession } from '../../api/access/access-session.ts';
import type { KubeObject } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { requesterOf, typeOf } from '../access-requests.ts';
import { awaitedDecision, type Decision } from '../choices.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import { decideBy, requestedDuration } from '../commands/pending.ts';
import { streamText } from '../commands/sessions.ts';
import { approvalLines } from '../details.ts';
import { isFinal, isUsable, specOf, stateOf, statusOf } from '../request-state.ts';
import { useText } from '../use-text.ts';
import { claimText } from '../wait.ts';
import type { RequestRow, SessionRow } from './wire.ts';

export function requestRow(
  request: KubeObject,
  connection: Pick<ClusterConnection, 'program' | 'where' | 'kubectlFlags'>,
  nowMs: number,
): RequestRow {
  const { name, namespace = '', uid = '', creationTimestamp = '' } = request.metadata;
  const [spec, status] = [specOf(request), statusOf(request)];
  const { state, why, endsMs, pod } = stateOf(request);
  const about = awaitedDecision(request) ?? '';
  const claimable = claimText(connection, request) !== '';
  return {
    key: `${namespace}/${request.kind}/${name}`,
    namespace,
    name,
    uid,
    type: typeOf(request),
    template: spec.templateName ?? '',
    requester: requesterOf(request),
    reason: spec.reason ?? '',
    link: httpsOnly(status.reasonLink),
    emergency: spec.emergency === true,
    duration: requestedDuration(request, undefined, nowMs),
    createdMs: parseTime(creationTimestamp) ?? 0,
    state,
    final: isFinal(state),
    why,
    startsMs: parseTime(status.grant?.startsAt ?? (status.grant ? creationTimestamp : (spec.startAt ?? ''))),
    endsMs,
    pod,
    use: isUsable(request) ? useText(request, connection) : '',
    claimable,
    // An extension that waits must be decided first.
    extendable: state === 'Open' && !spec.emergency && about === '' && (spec.extensions?.length ?? 0) < maxExtensions,
    approvals: approvalLines(request),
    about,
    choice: '',
    decideByMs: about === '' && !claimable ? undefined : parseTime(decideBy(request)),
  };
}

/** With what the user can decide, and for how long it is by the template. */
export const withDecision = (
  row: RequestRow,
  request: KubeObject,
  decision: Decision | undefined,
  nowMs: number,
): RequestRow => ({
  ...row,
  choice: decision?.choice ?? '',
  duration: requestedDuration(request, decision?.template, nowMs),
});

/** A template's author writes the address. */
const httpsOnly = (link = ''): string => (URL.canParse(link) && new URL(link).protocol === 'https:' ? link : '');

export function sessionRow(object: KubeObject): SessionRow {
  const session = object as AccessSession;
  const { metadata, spec } = session;
  const { name, namespace = '' } = metadata;
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    user: spec.user,
    pod: spec.pod,
    container: spec.container ?? '',
    stream: streamText(session),
    startedMs: parseTime(spec.startedAt) ?? 0,
    request: `${namespace}/${spec.request.kind}/${spec.request.name}`,
  };
}
