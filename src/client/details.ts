import { type ChosenDuration, chooseDuration } from '../access/policy/duration-choice.ts';
import { durationBoundsOf } from '../access/policy/emergency-policy.ts';
import { setDeadlineMs } from '../access/policy/pod-deadline.ts';
import { maxReasonLength } from '../api/access/access-config.ts';
import { approvalCondition, limitedCondition, requestConditions, shortenedCondition } from '../api/access/names.ts';
import type { RequestStatus } from '../api/access/status.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { requesterOf, typeOf } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { extensionLines } from './extension-text.ts';
import type { Field } from './output.ts';
import {
  conditionOf,
  isFinal,
  isUsable,
  remedyOf,
  specOf,
  stateOf,
  statusOf,
  templateSpecOf,
} from './request-state.ts';
import { span, timeFrom } from './times.ts';
import { useText } from './use-text.ts';
import { claimText } from './wait.ts';

/** What `get` shows of a request. `template`: undefined if the user cannot read it. */
export function detailsOf(
  request: KubeObject,
  connection: Pick<ClusterConnection, 'program' | 'where' | 'kubectlFlags'>,
  nowMs: number,
  template?: KubeObject,
): readonly Field[] {
  const [spec, status] = [specOf(request), statusOf(request)];
  const { state, why, code, endsMs, pod } = stateOf(request);
  const timeText = (text: string | undefined): string => {
    const ms = parseTime(text ?? '');
    return ms === undefined ? (text ?? '') : timeFrom(ms, nowMs);
  };
  const messageOf = (type: string): string => {
    const condition = conditionOf(request, type);
    return condition && condition.status !== 'False' ? condition.message : '';
  };
  const duration = expectedDuration(request, template)?.message ?? spec.duration ?? '';
  const isDenied = state === 'Denied';
  const isReview = status.approval?.state.startsWith('Review') === true;
  return [
    ['Name', `${typeOf(request)}/${request.metadata.name}`],
    ['Namespace', request.metadata.namespace ?? ''],
    ['Template', spec.templateName ?? ''],
    ['Requester', requesterOf(request)],
    ['Reason', spec.reason ?? ''],
    ['Link', status.reasonLink ?? ''],
    ['Emergency', spec.emergency ? 'yes' : ''],
    ['Requested', timeText(request.metadata.creationTimestamp)],
    ['Duration', messageOf(requestConditions.accessDurationsValid) || duration],
    ['Not before', timeText(spec.startAt)],
    ['Asked pod', askedPodOf(request)],
    ['State', state],
    [isDenied ? 'Denied' : 'Note', why],
    ['To do', isDenied ? remedyOf(code) : claimText(connection, request)],
    ['Review', isReview ? `${status.approval?.state}: ${messageOf(approvalCondition)}` : ''],
    // The votes about extensions are on their lines.
    [isReview ? 'Votes' : spec.extensions?.length ? 'Approvals of access' : 'Approvals', approvalLines(request)],
    [isFinal(state) && !isDenied ? 'Ended' : 'Ends', endsMs === undefined ? '' : timeFrom(endsMs, nowMs)],
    ['Shortened', messageOf(shortenedCondition)],
    ['Limited', messageOf(limitedCondition)],
    ['Extensions', extensionLines(request)],
    ['Pod', pod],
    ['Use', isUsable(request) ? useText(request, connection).split('\n') : ''],
  ];
}

/** The pod that the request names, if any. */
export const askedPodOf = ({ spec }: KubeObject): string => String(own(spec, 'targetPod') ?? '');

/** By the current template and its pod’s deadline; undefined if unknown or refused. */
export function expectedDuration(request: KubeObject, template: KubeObject | undefined): ChosenDuration | undefined {
  const config = template && templateSpecOf(template).accessConfig;
  if (!config) return undefined;
  const spec = specOf(request);
  const chosen = chooseDuration(spec.duration, durationBoundsOf(spec, config));
  if ('code' in chosen) return undefined;
  const podMs = setDeadlineMs(templateSpecOf(template));
  if (podMs >= chosen.grantedMs) return chosen;
  const message = `${span(podMs)}, because its pod ends then (activeDeadlineSeconds)`;
  return { grantedMs: podMs, message, clamped: spec.duration !== undefined };
}

/** The progress of each entry, and the votes. */
export function approvalLines(request: KubeObject): string[] {
  const { all = [], votes = [] } = statusOf(request).approval ?? {};
  return [...all.map(({ name, have, need }) => `${name}: ${have} of ${need}`), ...votes.map(voteLine)];
}

type ShownVote = NonNullable<NonNullable<RequestStatus['approval']>['votes']>[number];

const voteLine = ({ voter, decision, max, reason = '', onBehalfOf, ignored }: ShownVote): string =>
  [
    `${voter}: ${decision}`,
    max === undefined ? '' : `at most ${max}`,
    onBehalfOf === undefined ? '' : `for ${onBehalfOf}`,
    reason === '' ? '' : `because ${quote(reason, maxReasonLength)}`,
    ignored === undefined ? '' : `(not counted: ${ignored})`,
  ]
    .filter((part) => part !== '')
    .join(' ');
