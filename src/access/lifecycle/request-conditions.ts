import { outcomeOf } from '../../api/access/ending.ts';
import {
  approvalCondition,
  type RequestCondition,
  requestConditions,
  shortenedCondition,
} from '../../api/access/names.ts';
import { mergeConditions } from '../../api/conditions.ts';
import type { Condition } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { type AccessConditionUpdate, allTrue, isSummary, type Summary, summarized } from '../conditions.ts';
import type { RequestView } from '../stores/access-views.ts';

/** The granted time passed before access opened, as in Oz. */
const tooLateReason = 'Timeout';

/** By denial code. `AccessResourcesCreated` shows all other codes. */
const conditionOfCode: Readonly<Record<string, readonly [RequestCondition, string]>> = {
  TemplateNotFound: ['TargetTemplateExists', 'NotFound'],
  TemplateNotReady: ['TargetTemplateExists', 'TemplateNotReady'],
  InvalidDuration: ['AccessDurationsValid', 'NotAcceptable'],
  TooLate: ['AccessStillValid', tooLateReason],
  VoteDenied: [approvalCondition, 'Denied'],
  NotApproved: [approvalCondition, 'NotApproved'],
  NotClaimed: [approvalCondition, 'NotClaimed'],
};

export const conditionOf = (code: string): readonly [RequestCondition, string] =>
  conditionOfCode[code] ?? ['AccessResourcesCreated', code];

export function isDeniedOrEnded(request: Pick<RequestView, 'conditions'>): boolean {
  return request.conditions.some(isFinal);
}

/** Epoch ms of the final denial or the end. */
export const finalAtMs = ({ conditions }: Pick<RequestView, 'conditions'>): number | undefined =>
  parseTime(conditions.find(isFinal)?.lastTransitionTime ?? '');

export const hasEndedCondition = (request: Pick<RequestView, 'grant' | 'conditions'>): boolean =>
  request.grant !== undefined && request.conditions.some(isEnd);

/** Access was denied while it opened. Another condition then has the code of the denial. */
export const deniedReason = 'Denied';

const isEnd = ({ type, status, reason }: Condition): boolean =>
  type === 'AccessStillValid' && status === 'False' && reason !== deniedReason;

/** Conditions that can be False for a time. Any other False is final, except the summary. */
const temporary: readonly string[] = ['AccessResourcesReady', 'AccessMessage', shortenedCondition];

const isFinal = ({ type, status }: Condition): boolean =>
  status === 'False' && !temporary.includes(type) && !isSummary({ type });

/** With Ready, Reconciling, and Stalled. `nowMs`: epoch ms. `ready`: all `requestConditions`. */
export function withConditions(
  request: RequestView,
  nowMs: number,
  updates: readonly AccessConditionUpdate<RequestCondition>[],
): { readonly conditions: readonly Condition[]; readonly ready: boolean } {
  // What waits for something else no longer waits for the policies.
  const kept = request.conditions.filter(
    ({ type, reason }) => reason !== 'PoliciesMissing' || type !== 'AccessResourcesReady' || sets(updates, type),
  );
  const conditions = mergeConditions(kept, updates, nowMs, { generation: request.generation });
  const ready = allTrue(conditions, Object.values(requestConditions));
  return { conditions: summarized(request.generation, conditions, summaryOf(conditions, ready), nowMs), ready };
}

const sets = (updates: readonly AccessConditionUpdate<RequestCondition>[], type: string): boolean =>
  updates.some((update) => update.type === type);

/** A denial may set these to False in addition to the condition that shows its code. */
const secondary: readonly string[] = [approvalCondition, 'AccessStillValid'];

function summaryOf(conditions: readonly Condition[], ready: boolean): Summary {
  if (ready) return { state: 'ready', reason: 'Open', message: 'access is open' };
  const failed = (matches: (condition: Condition) => boolean): Condition | undefined =>
    conditions.find((condition) => condition.status === 'False' && matches(condition));
  const unclosed = conditions.find(({ type, status }) => type === 'AccessStillValid' && status === 'Unknown');
  if (unclosed) return { state: 'stalled', reason: unclosed.reason, message: unclosed.message };
  const final =
    failed(isEnd) ??
    failed((condition) => isFinal(condition) && !secondary.includes(condition.type)) ??
    failed(isFinal);
  if (final) return { state: 'stalled', ...finalSummary(final) };
  const unusable = failed(({ type }) => type === 'AccessMessage');
  if (unusable) return { state: 'stalled', reason: unusable.reason, message: unusable.message };
  const waiting =
    failed(({ type }) => type === 'AccessResourcesReady') ??
    conditions.find(({ type, status }) => type === approvalCondition && status === 'Unknown');
  return {
    state: 'reconciling',
    reason: waiting?.reason ?? 'Progressing',
    message: waiting?.message ?? 'access is being opened',
  };
}

/** `Expired` or `Revoked` for an `Ending`; `Denied`, with the code in the message. */
function finalSummary(condition: Condition): { readonly reason: string; readonly message: string } {
  const { reason, message } = condition;
  if (isEnd(condition) && reason !== tooLateReason) return { reason: outcomeOf(reason), message };
  const [code = reason] =
    Object.entries(conditionOfCode).find(([, [type, ofCode]]) => type === condition.type && ofCode === reason) ?? [];
  return { reason: 'Denied', message: code === deniedReason ? message : `${code}: ${message}` };
}
