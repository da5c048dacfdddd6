import type { Ended } from '../../api/access/ended.ts';
import { approvalCondition, type RequestCondition } from '../../api/access/names.ts';
import type { ExtensionStatus, RequestApproval } from '../../api/access/status.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { type AccessConditionUpdate, failure } from '../conditions.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { Ending } from './ending.ts';
import { conditionOf, deniedReason, withConditions } from './request-conditions.ts';
import type { RequestStatusPatch } from './request-status.ts';

/** The end of a request for one of the reasons in `Ending`: input of `endedStatus`. */
export interface End {
  readonly ending: Ending;
  /** Why the request ended, as a clause of its condition. */
  readonly text: string;
  /** `status.ended`, signed. */
  readonly ended: Ended;
  /** `status.approval` afterwards, for emergency access. */
  readonly approval?: RequestApproval | undefined;
  /** `status.extensions` afterwards, signed; undefined if it stays as it is. */
  readonly extensions?: readonly ExtensionStatus[] | undefined;
}

/** The status after the end of a request for one of the reasons in `Ending`. Call it once the children are deleted. */
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

/** The status of a final denial, before or after the grant was written. `ended` is signed. */
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

/**
 * The status of a request that ended without a grant, with the condition `update`. If the request waited, AccessApproved becomes False, and
 * `status.approval` is removed.
 */
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

/**
 * AccessStillValid as False, for access that was denied while it opened. Empty if the request does not have that condition, or if the
 * denial itself sets it (`denied`).
 */
const noLongerValid = (
  { conditions }: RequestView,
  denied: RequestCondition,
): AccessConditionUpdate<RequestCondition>[] =>
  denied !== 'AccessStillValid' && conditions.some(({ type }) => type === 'AccessStillValid')
    ? [failure('AccessStillValid', deniedReason, 'access was denied while it opened')]
    : [];

/**
 * AccessResourcesCreated after the deletion of the objects. It stays True, because False would be a denial. Empty if the request does not
 * have that condition as True.
 */
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

/** AccessResourcesReady and AccessMessage as False, because access has ended. Omits those that the request lacks. */
const unusable = ({ conditions }: RequestView): AccessConditionUpdate<RequestCondition>[] =>
  (['AccessResourcesReady', 'AccessMessage'] as const)
    .filter((wanted) => conditions.some(({ type }) => type === wanted))
    .map((type) => failure(type, 'AccessEnded', 'access has ended'));
