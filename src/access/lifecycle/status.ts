import { isDeepStrictEqual } from 'node:util';
import type { Ended } from '../../api/access/ended.ts';
import { type Ending, endingTexts } from '../../api/access/ending.ts';
import type { Grant } from '../../api/access/grant.ts';
import {
  approvalCondition,
  limitedCondition,
  type RequestCondition,
  requestConditions,
  shortenedCondition,
} from '../../api/access/names.ts';
import {
  type ExtensionStatus,
  type RequestApproval,
  type RequestChild,
  type RequestState,
  requestStateOf,
} from '../../api/access/status.ts';
import { mergeConditions, sameConditions } from '../../api/conditions.ts';
import type { Condition } from '../../api/object.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { durationText, parseGoDuration } from '../../kit/go-duration.ts';
import { allTrue, failure, isSummary, type Summary, success, summarized } from '../conditions.ts';
import { policiesAwaited } from '../policies/policy-check.ts';
import type { Violation } from '../policy/policy.ts';
import type { RequestView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { VoteView } from '../stores/vote-view.ts';
import { type ApprovalUpdate, deniedBy, type Update } from './approval-status.ts';
import { accessStartMs } from './request-ends.ts';

/** What a status is to show. */
export type Shown =
  | (ApprovalUpdate & { readonly is: 'waiting'; readonly reasonLink: string | undefined })
  /** For a proof of the admission policies. */
  | { readonly is: 'unproven' }
  | GrantShown
  | OpenShown
  /** All that were decided or wait. If the last is granted, access ends at its `expiresAt`. */
  | { readonly is: 'extended'; readonly extensions: readonly ExtensionStatus[] }
  | { readonly is: 'reviewed'; readonly approval: RequestApproval; readonly condition?: Update }
  /** For good, before or after the grant was written. */
  | {
      readonly is: 'denied';
      readonly violation: Violation;
      readonly ended: Ended;
      readonly approval?: RequestApproval | undefined;
    }
  | EndShown
  /** The access is to end, and its objects cannot be deleted yet. */
  | { readonly is: 'unclosed'; readonly message: string };

/** Decided, without a child. */
export interface GrantShown {
  readonly is: 'granted';
  readonly grant: Grant;
  /** The message of AccessDurationsValid. */
  readonly duration: string;
  /** One clause for each limit or request that the caps of the template set or lowered. */
  readonly limits: readonly string[];
  /** The URL for the reason of the request. */
  readonly reasonLink: string | undefined;
  /** Present if the duration counts from the opening of access (`countsFromOpening`). */
  readonly approved: ApprovalUpdate | undefined;
}

/** The children exist. */
export interface OpenShown {
  readonly is: 'open';
  readonly children: readonly RequestChild[];
  /** Epoch ms, with all edits of the template; `grantedEndMs` without. */
  readonly endMs: number;
  readonly grantedEndMs: number;
  readonly pod: PodView | undefined;
  readonly accessMessage: { readonly text: string } | { readonly violation: Violation };
}

/** The children are deleted. */
interface EndShown {
  readonly is: 'ended';
  readonly cause: Cause;
  readonly ended: Ended;
  /** For emergency access. */
  readonly approval: RequestApproval | undefined;
  /** Undefined leaves `status.extensions` as it is. */
  readonly extensions: readonly ExtensionStatus[] | undefined;
}

export interface Cause {
  readonly ending: Ending;
  readonly denial?: VoteView | undefined;
  /** `PodView.ended`. Lost if another process completes the end after the Pod is deleted. */
  readonly podEnd?: string | undefined;
}

/** A clause for Events and audit lines. */
export function causeText({ ending, denial, podEnd }: Cause): string {
  if (denial) return deniedBy({ vote: denial }).message;
  return podEnd === undefined ? endingTexts[ending] : `its pod has ended: ${podEnd}; create a new request`;
}

/** With the reason of who revoked it. */
export function endText({ spec: { revokedReason }, grant }: RequestView, cause: Cause): string {
  if (cause.ending === 'Expired' && !grant) return 'it was not decided in time; create a new request';
  const isExplained = cause.ending === 'Revoked' && revokedReason !== undefined;
  return isExplained ? `${causeText(cause)}: ${revokedReason}` : causeText(cause);
}

/** One merge patch writes these. Null removes a field. */
export interface RequestStatusPatch {
  readonly state: RequestState;
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
  readonly grant?: Grant;
  readonly ended?: Ended;
  readonly expiresAt?: string;
  readonly podName?: string;
  readonly accessMessage?: string | null;
  readonly approval?: RequestApproval | null;
  readonly reasonLink?: string | null;
  readonly extensions?: readonly ExtensionStatus[];
  readonly children?: readonly RequestChild[];
}

/**
 * The only function that makes `status.state` and conditions, with Ready, Reconciling, and Stalled.
 * `nowMs` (epoch ms) is the time of conditions that change.
 */
export function statusOf(request: RequestView, shown: Shown, nowMs: number): RequestStatusPatch {
  const { updates, ...fields } = partsOf(request, shown, nowMs);
  // What waits for something else no longer waits for the policies.
  const kept = request.conditions.filter(
    ({ type, reason }) => reason !== 'PoliciesMissing' || type !== 'AccessResourcesReady' || sets(updates, type),
  );
  const conditions = mergeConditions(kept, updates, nowMs, { generation: request.generation });
  const ready = allTrue(conditions, Object.values(requestConditions));
  const ended = fields.ended ?? request.ended;
  const summary = summaryOf(conditions, ready, ended);
  return {
    ...fields,
    state: requestStateOf({ ended, grant: request.grant, children: fields.children ?? request.children }),
    conditions: summarized(request.generation, conditions, summary, nowMs),
    ready,
  };
}

type Parts = Omit<RequestStatusPatch, 'state' | 'conditions' | 'ready'> & { readonly updates: readonly Update[] };

function partsOf(request: RequestView, shown: Shown, nowMs: number): Parts {
  switch (shown.is) {
    case 'waiting':
      return { approval: shown.approval, reasonLink: shown.reasonLink ?? null, updates: [shown.condition] };
    case 'unproven':
      return { updates: [failure('AccessResourcesReady', 'PoliciesMissing', policiesAwaited)] };
    case 'granted':
      return grantedParts(request, shown);
    case 'open':
      return openParts(request, shown);
    case 'extended': {
      const { extensions } = shown;
      const expiresAt = extensions.at(-1)?.expiresAt;
      if (expiresAt === undefined) return { extensions, updates: [] };
      return { extensions, expiresAt, updates: [success('AccessStillValid', `until ${expiresAt}`)] };
    }
    case 'reviewed':
      return { approval: shown.approval, updates: shown.condition ? [shown.condition] : [] };
    case 'denied':
      return deniedParts(request, shown, nowMs);
    case 'ended':
      return endedParts(request, shown);
    case 'unclosed': {
      const { message } = shown;
      return { updates: [{ type: 'AccessStillValid', status: 'Unknown', reason: 'ResourceRefused', message }] };
    }
  }
}

function grantedParts(request: RequestView, { grant, duration, limits, reasonLink, approved }: GrantShown): Parts {
  const { template, expiresAt, pod } = grant;
  const endMs = parseTime(expiresAt) ?? 0;
  const limited = { type: limitedCondition, status: 'True', reason: 'LimitedByTemplate', message: limits.join('; ') };
  return {
    grant,
    expiresAt,
    podName: pod.name,
    ...(approved ? { approval: approved.approval } : {}),
    reasonLink: reasonLink ?? null,
    updates: [
      ...(approved ? [approved.condition] : []),
      success('TargetTemplateExists', `${template.kind} ${template.name}, generation ${template.generation}`),
      ...(limits.length > 0 ? [limited as Update] : []),
      success('AccessDurationsValid', duration),
      ...shortenedUpdates({ ...request, grant }, endMs, endMs),
      success('AccessStillValid', `until ${expiresAt}`),
    ],
  };
}

function openParts(request: RequestView, { children, endMs, grantedEndMs, pod, accessMessage }: OpenShown): Parts {
  const expiresAt = formatTime(endMs);
  const why = endMs < grantedEndMs ? ', because an edit of the template shortened the access' : '';
  const updates: Update[] = [
    success('AccessStillValid', `until ${expiresAt}${why}`),
    ...shortenedUpdates(request, endMs, grantedEndMs),
    success('AccessResourcesCreated', children.map(({ kind, name }) => `${kind} ${name}`).join(', ')),
  ];
  if (!pod?.ready) {
    const waitsFor = pod?.notReadyReason || 'the API server has not reported the Pod yet';
    return { children, expiresAt, updates: [...updates, failure('AccessResourcesReady', 'NotYetReady', waitsFor)] };
  }
  updates.push(success('AccessResourcesReady', `Pod ${pod.name} is ready`));
  if ('violation' in accessMessage) {
    const { code, message } = accessMessage.violation;
    return { children, expiresAt, updates: [...updates, failure('AccessMessage', code, message)] };
  }
  const { text } = accessMessage;
  return { children, expiresAt, accessMessage: text, updates: [...updates, success('AccessMessage', text)] };
}

/**
 * True if an edit of the template (`TemplateChanged`) or less than was asked for (`LessThanAsked`)
 * shortens the access; False (`AsGranted`) once that is over. None if it was never shortened.
 */
function shortenedUpdates(request: RequestView, endMs: number, grantedEndMs: number): Update[] {
  const update = (status: 'True' | 'False', reason: string, message: string): Update[] => [
    { type: shortenedCondition, status, reason, message },
  ];
  if (endMs < grantedEndMs) {
    const message = `until ${formatTime(endMs)} instead of ${formatTime(grantedEndMs)}, because an edit of the template shortened it`;
    return update('True', 'TemplateChanged', message);
  }
  const asked = parseGoDuration(request.spec.duration ?? '');
  const grantedNs = BigInt(grantedEndMs - accessStartMs(request)) * 1_000_000n;
  if ('ns' in asked && asked.ns > grantedNs)
    return update('True', 'LessThanAsked', `asked for ${durationText(asked.ns)}, granted ${durationText(grantedNs)}`);
  return has(request, shortenedCondition) ? update('False', 'AsGranted', `until ${formatTime(endMs)}`) : [];
}

function deniedParts(
  request: RequestView,
  { violation, ended, approval }: Extract<Shown, { is: 'denied' }>,
  nowMs: number,
): Parts {
  const [type, reason] = conditionOf(violation.code);
  const update = failure(type, reason, violation.message);
  if (!request.grant) return { ended, ...notWaiting(request, update), ...(approval ? { approval } : {}) };
  const expiresAt = formatTime(Math.min(nowMs, parseTime(request.expiresAt ?? '') ?? nowMs));
  const isNoLongerValid = type !== 'AccessStillValid' && has(request, 'AccessStillValid');
  const noLongerValid = failure('AccessStillValid' as const, 'Denied', 'access was denied while it opened');
  return { ended, expiresAt, updates: isNoLongerValid ? [update, noLongerValid] : [update] };
}

function endedParts(request: RequestView, { cause, ended, approval, extensions }: EndShown): Parts {
  const what = request.grant ? 'access' : 'the request';
  const update = failure('AccessStillValid', cause.ending, `${what} ended at ${ended.at}: ${endText(request, cause)}`);
  if (!request.grant) return { ended, ...notWaiting(request, update) };
  // It stays True, although the objects are deleted, because False would be a denial.
  const deleted: Update = {
    type: 'AccessResourcesCreated',
    status: 'True',
    reason: 'AccessEnded',
    message: 'the objects of the grant were created, and deleted when access ended',
  };
  const unusable = (['AccessResourcesReady', 'AccessMessage'] as const).filter((type) => has(request, type));
  return {
    ended,
    ...(approval ? { approval } : {}),
    ...(extensions ? { extensions } : {}),
    expiresAt: ended.at,
    accessMessage: null,
    children: [],
    updates: [
      update,
      ...(has(request, 'AccessResourcesCreated', 'True') ? [deleted] : []),
      ...unusable.map((type) => failure(type, 'AccessEnded', 'access has ended')),
    ],
  };
}

/** If the request waited, AccessApproved becomes False, and `status.approval` goes. */
function notWaiting(request: RequestView, update: Update): Parts {
  if (!has(request, approvalCondition, 'Unknown')) return { updates: [update] };
  const unapproved = failure(approvalCondition, update.reason, update.message);
  return { approval: null, updates: update.type === approvalCondition ? [update] : [unapproved, update] };
}

const has = ({ conditions }: RequestView, wanted: RequestCondition, inStatus?: Condition['status']): boolean =>
  conditions.some(({ type, status }) => type === wanted && (inStatus === undefined || status === inStatus));

const sets = (updates: readonly Update[], type: string): boolean => updates.some((update) => update.type === type);

/** By denial code. `AccessResourcesCreated` shows all other codes. */
const conditionOfCode: Readonly<Record<string, readonly [RequestCondition, string]>> = {
  TemplateNotFound: ['TargetTemplateExists', 'NotFound'],
  TemplateNotReady: ['TargetTemplateExists', 'TemplateNotReady'],
  InvalidDuration: ['AccessDurationsValid', 'NotAcceptable'],
  // As in Oz.
  TooLate: ['AccessStillValid', 'Timeout'],
  VoteDenied: [approvalCondition, 'Denied'],
  NotApproved: [approvalCondition, 'NotApproved'],
  NotClaimed: [approvalCondition, 'NotClaimed'],
};

export const conditionOf = (code: string): readonly [RequestCondition, string] =>
  conditionOfCode[code] ?? ['AccessResourcesCreated', code];

/** The first that applies. */
function summaryOf(conditions: readonly Condition[], ready: boolean, ended: Ended | undefined): Summary {
  const find = (wanted: string, inStatus: Condition['status']): Condition | undefined =>
    conditions.find(({ type, status }) => type === wanted && status === inStatus);
  const because = (state: 'stalled' | 'reconciling', { reason, message }: Condition): Summary => ({
    state,
    reason,
    message,
  });
  if (ready) return { state: 'ready', reason: 'Open', message: 'access is open' };
  const unclosed = find('AccessStillValid', 'Unknown');
  if (unclosed) return because('stalled', unclosed);
  if (ended) {
    const isDenied = ended.how === 'Denied';
    const { message = '' } = find(isDenied ? conditionOf(ended.reason)[0] : 'AccessStillValid', 'False') ?? {};
    return { state: 'stalled', reason: ended.how, message: isDenied ? `${ended.reason}: ${message}` : message };
  }
  const unusable = find('AccessMessage', 'False');
  if (unusable) return because('stalled', unusable);
  const waiting = find('AccessResourcesReady', 'False') ?? find(approvalCondition, 'Unknown');
  if (waiting) return because('reconciling', waiting);
  return { state: 'reconciling', reason: 'Progressing', message: 'access is being opened' };
}

/** Conditions that can be False for a time. Any other False is final, except the summary. */
const temporary: readonly string[] = ['AccessResourcesReady', 'AccessMessage', shortenedCondition];

/** Denied or ended, although `status.ended` is missing: Oz or a restored status may lack it. */
export const isFinal = ({ conditions }: Pick<RequestView, 'conditions'>): boolean =>
  conditions.some(({ type, status }) => status === 'False' && !temporary.includes(type) && !isSummary({ type }));

const compared = ['ready', 'expiresAt', 'approval', 'extensions'] as const;

/** Ignores the times of conditions, `podName`, and `accessMessage`. A grant or an end is a change. */
export function isUnchanged(request: RequestView, next: RequestStatusPatch): boolean {
  if (next.grant || next.ended) return false;
  const isSame = (field: (typeof compared)[number]): boolean =>
    next[field] === undefined || isDeepStrictEqual(next[field], request[field]);
  // Until access ends, the children do not change once the status lists them.
  const sameChildren = next.children === undefined || next.children.length === request.children.length;
  const sameLink = next.reasonLink === undefined || next.reasonLink === (request.reasonLink ?? null);
  // A CRD of an earlier version drops the state.
  const sameState = request.state === undefined || next.state === request.state;
  return (
    compared.every(isSame) &&
    sameState &&
    sameChildren &&
    sameLink &&
    sameConditions(request.conditions, next.conditions)
  );
}
