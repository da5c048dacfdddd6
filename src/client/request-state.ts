import { ignoredFieldsText } from '../access/policy/refusal-text.ts';
import { requestCodes } from '../api/access/codes.ts';
import type { RequestSpec } from '../api/access/kinds.ts';
import {
  approvalCondition,
  requestConditions,
  shortenedCondition,
  summaryConditions,
  templateConditions,
} from '../api/access/names.ts';
import type { RequestStatus } from '../api/access/status.ts';
import { templateCodes } from '../api/access/template-codes.ts';
import type { CodeTable } from '../api/code-table.ts';
import { serverCodes } from '../api/codes.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';

/**
 * The state of a request, as commands show it. `New`: the server has not decided on it. `Pending`: it waits for approvals. `Scheduled`: it
 * waits for its start time or for a start window. `Claimable`: it waits for its requester to run `start`. `Opening`: it is granted, and
 * access is not open yet. `Ready`: access is open; `why` then has the reason if the command that uses it is missing. `Ending`: a user gave
 * back, revoked, or deleted the request, and the server has not closed its access yet. `Ended` and `Denied` are final.
 */
export type State = 'New' | 'Pending' | 'Scheduled' | 'Claimable' | 'Opening' | 'Ready' | 'Ending' | 'Denied' | 'Ended';

/** The state of a request with its details. All texts are from the object and may contain control characters. */
export interface RequestState {
  readonly state: State;
  /** What the request waits for, why it was denied, why it ended, or that its command is missing; empty if the request has no such text. */
  readonly why: string;
  /**
   * The code of the denial in `status.ended`, or else the reason of the condition behind `why`. `codeOf` reads the code from either. Empty
   * if there is none.
   */
  readonly code: string;
  /** When access ends or has ended, epoch ms; undefined before the grant. */
  readonly endsMs: number | undefined;
  /** The granted pod; empty before the grant. */
  readonly pod: string;
}

interface ReadCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

export const specOf = ({ spec }: KubeObject): Partial<RequestSpec> => (spec ?? {}) as Partial<RequestSpec>;
/** The status as the server wrote it. The API server has checked its schema. */
export const statusOf = ({ status }: KubeObject): RequestStatus => (status ?? {}) as RequestStatus;

export const conditionsOf = (object: KubeObject): ReadCondition[] =>
  listIn(object.status, 'conditions').map((condition) => ({
    type: text(own(condition, 'type')),
    status: text(own(condition, 'status')),
    reason: text(own(condition, 'reason')),
    message: text(own(condition, 'message')),
  }));

/** Which fields of the template the API server ignores, as the leader found; empty if there are none. */
export function ignoredFieldsIn(template: KubeObject): string {
  const { accessPlanValid } = templateConditions;
  const plan = conditionsOf(template).find(({ type, status }) => type === accessPlanValid && status === 'True');
  return plan ? ignoredFieldsText(plan.message) : '';
}

/** Why the template is not ready: the code and the message of its condition Ready. Undefined if it is ready, or not judged yet. */
export function unreadinessOf(template: KubeObject): { readonly code: string; readonly message: string } | undefined {
  const ready = conditionsOf(template).find(({ type }) => type === summaryConditions.ready);
  return ready?.status === 'False' ? { code: ready.reason, message: ready.message } : undefined;
}

/** What can make the access command of the template fail, as the leader found; empty if there is nothing. */
export function commandDoubtIn(template: KubeObject): string {
  const { accessCommandValid } = templateConditions;
  const command = conditionsOf(template).find(({ type, status }) => type === accessCommandValid && status === 'True');
  // If the command is only doubtful, the message begins with its field.
  return command?.message.startsWith('spec.') ? command.message : '';
}

/** Conditions that can be False although the request is neither denied nor ended. Any other condition that is False is final. */
const temporary: readonly string[] = [
  requestConditions.accessResourcesReady,
  requestConditions.accessMessage,
  shortenedCondition,
  ...Object.values(summaryConditions),
];
/** Reasons of the condition Ready of a request that has ended. */
const endReasons: readonly string[] = ['Revoked', 'Expired'];
const deniedReasons: readonly string[] = ['Denied'];

/** The state of a request, by its conditions, its status, and `spec.revoked`. */
export function stateOf(request: KubeObject): RequestState {
  const [spec, status] = [specOf(request), statusOf(request)];
  const conditions = conditionsOf(request);
  const common = {
    endsMs: parseTime(text(status.expiresAt ?? status.grant?.expiresAt)),
    pod: text(status.podName),
  };
  const stateWith = (state: State, condition?: Pick<ReadCondition, 'reason' | 'message'>): RequestState => ({
    ...common,
    state,
    why: condition?.message ?? '',
    code: condition?.reason ?? '',
  });
  const ready = conditions.find(({ type }) => type === summaryConditions.ready);
  const failed = conditions.find(
    (condition) => condition.status === 'False' && !temporary.includes(condition.type) && !repeatsDenial(condition),
  );
  if (ready?.status === 'False' && deniedReasons.includes(ready.reason)) {
    const denial = failed ?? ready;
    return stateWith('Denied', { reason: status.ended?.reason ?? denial.reason, message: denial.message });
  }
  if (ready?.status === 'False' && endReasons.includes(ready.reason)) return stateWith('Ended', ready);
  if (own(status, 'ended') !== undefined) return stateWith('Ended', failed ?? ready);
  if (failed) return stateWith(isEnd(failed, status) ? 'Ended' : 'Denied', failed);
  // Until the server writes that it has closed the access, the grant may still be open.
  const closingState: State = status.grant ? 'Ending' : 'Ended';
  if (spec.revoked)
    return stateWith(closingState, { reason: 'Revoked', message: spec.revokedReason ?? 'given back or revoked' });
  if (request.metadata.deletionTimestamp !== undefined)
    return stateWith(closingState, { reason: 'Deleted', message: 'deleted' });
  if (status.ready) return stateWith('Ready');
  const unusable = status.grant && missingCommand(conditions);
  if (unusable) return stateWith('Ready', unusable);
  const opening = conditions.find(
    ({ type, status }) => status === 'False' && temporary.includes(type) && type.startsWith('Access'),
  );
  if (status.grant) return stateWith('Opening', opening);
  const approval = conditions.find(({ type }) => type === approvalCondition);
  const approvalState = status.approval?.state;
  if (approvalState === 'Pending' || approvalState === 'Scheduled' || approvalState === 'Claimable')
    return stateWith(approvalState, approval);
  return stateWith('New', opening);
}

/**
 * Why open access has no command: the pod is ready, but the command of the template does not fit it. Undefined otherwise. The message
 * addresses the requester.
 */
function missingCommand(conditions: readonly ReadCondition[]): Pick<ReadCondition, 'reason' | 'message'> | undefined {
  const { accessResourcesReady, accessMessage } = requestConditions;
  const failed = conditions.find(({ type, status }) => type === accessMessage && status === 'False');
  const isPodReady = conditions.some(({ type, status }) => type === accessResourcesReady && status === 'True');
  if (!failed || !isPodReady) return undefined;
  const { reason, message } = failed;
  return {
    reason,
    message: `the server could not write the command that uses the access: ${reason}: ${message}. Ask the author of the template to correct it`,
  };
}

/** Whether the condition only repeats that access was denied while it opened. Another condition has the code. */
const repeatsDenial = ({ type, reason }: ReadCondition): boolean =>
  type === requestConditions.accessStillValid && deniedReasons.includes(reason);

/**
 * The state for people: like `state`, but `Expired` for an end with that code. The code `Revoked` stays hidden, because the requester may
 * have given the access back.
 */
export function stateText(request: KubeObject): string {
  const { state, code } = stateOf(request);
  return state === 'Ended' && code === 'Expired' ? code : state;
}

/** Whether a condition that is False shows the end of granted access, and not a denial. */
const isEnd = ({ type }: ReadCondition, { grant }: RequestStatus): boolean =>
  grant !== undefined && type === requestConditions.accessStillValid;

/** Whether the request was denied or has ended, so that the server has closed its access. */
export const isFinal = (state: State): boolean => state === 'Denied' || state === 'Ended';
/** Whether the request can no longer open access. Access that is open may last until the server closes it. */
export const cannotOpen = (state: State): boolean => isFinal(state) || state === 'Ending';

const remedies: CodeTable = { ...requestCodes, ...serverCodes };
/** The code of a denial, by the reason of the condition that shows it. For all other denials, the reason is the code. */
const codeOfReason: Readonly<Record<string, string>> = {
  Denied: 'VoteDenied',
  TimedOut: 'NotApproved',
  NotFound: 'TemplateNotFound',
  NotAcceptable: 'InvalidDuration',
  Timeout: 'TooLate',
};

/** The code of a denial, as the reference lists it, by the reason of its condition. */
export const codeOf = (reason: string): string =>
  (Object.hasOwn(codeOfReason, reason) ? codeOfReason[reason] : undefined) ?? reason;

/**
 * What to do about a denial with this reason. Empty if its code is unknown. Also empty if the remedy of the code is for the requester, and
 * `message` already has one after a semicolon.
 */
export function remedyOf(reason: string, message = ''): string {
  const code = codeOf(reason);
  const entry = Object.hasOwn(remedies, code) ? remedies[code] : undefined;
  if (code === 'AuthorLacksRights' || code === 'AuthorUnknown')
    return 'Ask a user who holds the permissions to update the template, then create a new request.';
  // The remedies of these codes address the author of the template.
  if (Object.hasOwn(templateCodes, code) || entry?.audience === 'author')
    return 'Ask the author of the template to correct it, then create a new request.';
  if (message.includes('; ')) return '';
  return entry?.remedy.replaceAll('`', '') ?? '';
}
