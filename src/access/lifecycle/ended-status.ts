import type { Ended } from '../../api/access/ended.ts';
import type { Ending } from '../../api/access/ending.ts';
import { approvalCondition, type RequestCondition } from '../../api/access/names.ts';
import type { ExtensionStatus, RequestApproval } from '../../api/access/status.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { type AccessConditionUpdate, failure } from '../conditions.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView } from '../stores/access-views.ts';
import { conditionOf, deniedReason, withConditions } from './request-conditions.ts';
import type { RequestStatusPatch } from './request-status.ts';

export interface End {
  readonly ending: Ending;
  /** A clause of the condition. */
  readonly text: string;
  readonly ended: Ended;
  /** For emergency access. */
  readonly approval?: RequestApproval | undefined;
  /** Undefined leaves `status.extensions` as it is. */
  readonly extensions?: readonly ExtensionStatus[] | undefined;
}

/** Call it once the children are deleted. */
export function endedStatus(
  request: RequestView,
  { ending, text, ended, approval, extensions }: End,
  nowMs: number,
): RequestStatusPatch {
  const message = `${request.grant ? 'access' : 'the request'} ended at ${ended.at}: ${text}`;
  const update = failure('AccessStillValid', ending, message);
  if (!request.grant) return { ended, ...notWaiting(request, update, nowMs) };
  return {
    ended,
    ...(approval ? { approval } : {}),
    ...(extensions ? { extensions } : {}),
    expiresAt: ended.at,
    accessMessage: null,
    children: [],
    ...withConditions(request, nowMs, [update, ...deletedResources(request), ...unusable(request)]),
  };
}

/** The access is to end, and its objects cannot be deleted yet. */
export const unclosedStatus = (request: RequestView, message: string, nowMs: number): RequestStatusPatch =>
  withConditions(request, nowMs, [{ type: 'AccessStillValid', status: 'Unknown', reason: 'ResourceRefused', message }]);

/** A final denial, before or after the grant was written. */
export function deniedStatus(
  request: RequestView,
  violation: Violation,
  ended: Ended,
  nowMs: number,
  approval?: RequestApproval,
): RequestStatusPatch {
  const [type, reason] = conditionOf(violation.code);
  const update = failure(type, reason, violation.message);
  if (request.grant) {
    const expiresAt = formatTime(Math.min(nowMs, parseTime(request.expiresAt ?? '') ?? nowMs));
    return { ended, expiresAt, ...withConditions(request, nowMs, [update, ...noLongerValid(request, type)]) };
  }
  return { ended, ...notWaiting(request, update, nowMs), ...(approval ? { approval } : {}) };
}

/** If the request waited, AccessApproved becomes False, and `status.approval` goes. */
function notWaiting(
  request: RequestView,
  update: AccessConditionUpdate<RequestCondition>,
  nowMs: number,
): RequestStatusPatch {
  const waited = request.conditions.some(({ type, status }) => type === approvalCondition && status === 'Unknown');
  if (!waited) return withConditions(request, nowMs, [update]);
  const unapproved = failure(approvalCondition, update.reason, update.message);
  const updates = update.type === approvalCondition ? [update] : [unapproved, update];
  return { approval: null, ...withConditions(request, nowMs, updates) };
}

/** For access that was denied while it opened, unless the denial itself sets the condition. */
const noLongerValid = (
  { conditions }: RequestView,
  denied: RequestCondition,
): AccessConditionUpdate<RequestCondition>[] =>
  denied !== 'AccessStillValid' && conditions.some(({ type }) => type === 'AccessStillValid')
    ? [failure('AccessStillValid', deniedReason, 'access was denied while it opened')]
    : [];

/** The objects are deleted, but the condition stays True, because False would be a denial. */
const deletedResources = ({ conditions }: RequestView): AccessConditionUpdate<RequestCondition>[] =>
  conditions.some(({ type, status }) => type === 'AccessResourcesCreated' && status === 'True')
    ? [
        {
          type: 'AccessResourcesCreated',
          status: 'True',
          reason: 'AccessEnded',
          message: 'the objects of the grant were created, and deleted when access ended',
        },
      ]
    : [];

const unusable = ({ conditions }: RequestView): AccessConditionUpdate<RequestCondition>[] =>
  (['AccessResourcesReady', 'AccessMessage'] as const)
    .filter((wanted) => conditions.some(({ type }) => type === wanted))
    .map((type) => failure(type, 'AccessEnded', 'access has ended'));
