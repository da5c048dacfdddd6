import { maxReasonLength } from '../api/access/access-config.ts';
import { limitedCondition, shortenedCondition } from '../api/access/names.ts';
import type { RequestStatus } from '../api/access/status.ts';
import type { KubeObject } from '../api/object.ts';
import { pods } from '../api/resources.ts';
import { parseTime } from '../kit/clock.ts';
import { quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { findObject } from '../kube/client.ts';
import { requesterOf, typeOf } from './access-requests.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { durationText } from './duration-text.ts';
import { type ExtensionVote, extensionLines } from './extension-text.ts';
import { fields } from './output.ts';
import {
  cannotOpen,
  conditionsOf,
  remedyOf,
  type State,
  specOf,
  stateOf,
  stateText,
  statusOf,
} from './request-state.ts';
import { timeFrom } from './times.ts';
import { useText } from './use-text.ts';
import { unlessForbidden } from './voted-template.ts';

interface DetailsOptions {
  /** How users call the client. */
  readonly program?: string;
  /** Of commands, each quoted for a shell. */
  readonly flags?: readonly string[];
  /** Absent if it does not exist, or the user may not read it. */
  readonly template?: KubeObject | undefined;
  /** From `askedPodText`. */
  readonly askedPod?: string;
  /** From `extensionVotes`. */
  readonly votes?: ReadonlyMap<string, ExtensionVote>;
}

/** What `get` prints for a request. */
export function detailsOf(
  request: KubeObject,
  nowMs: number,
  { program = 'drawbridge', flags = [], template, askedPod = '', votes = new Map() }: DetailsOptions = {},
): string {
  const [spec, status] = [specOf(request), statusOf(request)];
  const { state, why, code, endsMs, pod } = stateOf(request);
  const timeText = (text: string | undefined): string => {
    const ms = parseTime(text ?? '');
    return ms === undefined ? (text ?? '') : timeFrom(ms, nowMs);
  };
  const conditionText = (type: string): string =>
    conditionsOf(request).find((condition) => condition.type === type && condition.status !== 'False')?.message ?? '';
  const isDenied = state === 'Denied';
  return fields([
    ['Name', `${typeOf(request)}/${request.metadata.name}`],
    ['Namespace', request.metadata.namespace ?? ''],
    ['Template', spec.templateName ?? ''],
    ['Requester', requesterOf(request)],
    ['Reason', spec.reason ?? ''],
    ['Link', status.reasonLink ?? ''],
    ['Emergency', spec.emergency ? 'yes' : ''],
    ['Requested', timeText(request.metadata.creationTimestamp)],
    ['Duration', durationText(request, template)],
    ['Not before', timeText(spec.startAt)],
    ['Asked pod', askedPod],
    ['State', stateText(request)],
    [isDenied ? 'Denied' : 'Note', why],
    ['To do', isDenied ? remedyOf(code) : nextStep(request, state, { program, flags })],
    // The votes about extensions are on their lines.
    status.approval?.state.startsWith('Review')
      ? ['Review', reviewLines(request, timeText)]
      : [spec.extensions?.length ? 'Approvals of access' : 'Approvals', approvalLines(request)],
    ['Starts', state === 'Scheduled' ? `${timeText(status.approval?.until)}, at the earliest` : ''],
    [state === 'Ended' ? 'Ended' : 'Ends', endsMs === undefined ? '' : timeFrom(endsMs, nowMs)],
    ['Shortened', conditionText(shortenedCondition)],
    ['Limited', conditionText(limitedCondition)],
    ['Extensions', extensionLines(request, votes)],
    ['Pod', pod],
    ['Use', state === 'Open' ? useText(request).split('\n') : ''],
  ]);
}

/** The pod that the request names, if any. */
export const askedPodOf = ({ spec }: KubeObject): string => String(own(spec, 'targetPod') ?? '');

/** Before the grant, also why access cannot open in the pod now. Rejects as the client does. */
export async function askedPodText({ cluster }: ClusterConnection, request: KubeObject): Promise<string> {
  const name = askedPodOf(request);
  if (name === '' || statusOf(request).grant || cannotOpen(stateOf(request).state)) return name;
  const { namespace = '' } = request.metadata;
  const pod = await unlessForbidden(findObject(cluster.client, pods, { namespace, name }, {}));
  if (pod instanceof Error) return name;
  const phase = own(pod?.status, 'phase');
  if (phase === 'Running') return name;
  const found = pod ? `is ${String(phase)} now` : 'does not exist now';
  return `${name}, which ${found}; access opens only in a running pod of the workload`;
}

/** What the requester must do to start access. */
function nextStep(
  request: KubeObject,
  state: State,
  { program, flags }: Required<Pick<DetailsOptions, 'program' | 'flags'>>,
): string {
  if (state !== 'Claimable') return '';
  const { name, namespace } = request.metadata;
  const target = [`${typeOf(request)}/${name}`, ...(namespace === undefined ? [] : ['-n', namespace]), ...flags].join(
    ' ',
  );
  return `claim it with: ${program} claim ${target}`;
}

const joined = (parts: readonly string[], separator: string): string =>
  parts.filter((part) => part !== '').join(separator);

function approvalLines(request: KubeObject): string[] {
  const { all = [], votes = [] } = statusOf(request).approval ?? {};
  return [
    ...all.map(({ name, have, need }) => `${name}: ${have} of ${need}`),
    ...votes.map((vote) => voteLine(vote, vote.decision)),
  ];
}

/** How people reviewed the emergency, or by when another person must. */
function reviewLines(request: KubeObject, timeText: (time: string | undefined) => string): string[] {
  const { state, until, votes = [] } = statusOf(request).approval ?? {};
  if (state === 'ReviewOwed') return [`another person must make it by ${timeText(until)}`];
  if (state === 'ReviewOverdue') return [`overdue since ${timeText(until)}`];
  if (votes.length === 0) return ['none is owed any more'];
  return votes.map((vote) => voteLine(vote, vote.decision === 'Deny' ? 'not justified' : 'justified'));
}

type ShownVote = NonNullable<NonNullable<RequestStatus['approval']>['votes']>[number];

const voteLine = ({ voter, max, reason = '', onBehalfOf, ignored }: ShownVote, verdict: string): string =>
  joined(
    [
      `${voter}: ${verdict}`,
      max === undefined ? '' : `at most ${max}`,
      onBehalfOf === undefined ? '' : `for ${onBehalfOf}`,
      reason === '' ? '' : `because ${quote(reason, maxReasonLength)}`,
      ignored === undefined ? '' : `(not counted: ${ignored})`,
    ],
    ' ',
  );
