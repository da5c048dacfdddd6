import type { RequestSpec, TemplateSpec } from '../api/access/kinds.ts';
import { fieldsIgnored, requestConditions, summaryConditions, templateConditions } from '../api/access/names.ts';
import type { RequestStatus } from '../api/access/status.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';
import { codeEntries } from './code-entries.ts';

/**
 * The state of a request. `New`: not decided. `Pending`: waits for approvals. `Scheduled`: waits
 * for its start. `Claimable`: waits for its claim. `Opening`: granted, not open. `Open`: open; `why`
 * says if its command is missing. `Ending`: revoked or deleted, not closed yet.
 * `Ended` and `Denied`: final.
 */
export type State = 'New' | 'Pending' | 'Scheduled' | 'Claimable' | 'Opening' | 'Open' | 'Ending' | 'Denied' | 'Ended';

/** All texts are from the object and may contain control characters. */
export interface RequestState {
  readonly state: State;
  /** What it waits for, the code of its denial or end and why, or that its command is missing. */
  readonly why: string;
  /** Of the denial in `status.ended`, or the reason of the condition Ready. */
  readonly code: string;
  /** When access ends or ended, epoch ms; undefined before the grant. */
  readonly endsMs: number | undefined;
  /** Empty before the grant. */
  readonly pod: string;
}

interface ReadCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The API server has checked the schema of these, so the client does not check it again. */
export const templateSpecOf = ({ spec }: KubeObject): Partial<TemplateSpec> => (spec ?? {}) as Partial<TemplateSpec>;
export const specOf = ({ spec }: KubeObject): Partial<RequestSpec> => (spec ?? {}) as Partial<RequestSpec>;
export const statusOf = ({ status }: KubeObject): RequestStatus => (status ?? {}) as RequestStatus;

export const conditionsOf = (object: KubeObject): ReadCondition[] =>
  listIn(object.status, 'conditions').map((condition) => ({
    type: text(own(condition, 'type')),
    status: text(own(condition, 'status')),
    reason: text(own(condition, 'reason')),
    message: text(own(condition, 'message')),
    lastTransitionTime: text(own(condition, 'lastTransitionTime')),
  }));

export const conditionOf = (object: KubeObject, wanted: string): ReadCondition | undefined =>
  conditionsOf(object).find(({ type }) => type === wanted);

export const readyOf = (object: KubeObject): ReadCondition | undefined => conditionOf(object, summaryConditions.ready);

/** Reason and message of its condition Ready; empty if that is not False. */
export function unreadinessOf(object: KubeObject): string {
  const ready = readyOf(object);
  return ready?.status === 'False' ? `${ready.reason}: ${ready.message}` : '';
}

/** Fields of the template that the API server ignores, as the leader found. */
export function ignoredFieldsIn(template: KubeObject): string {
  const planValid = conditionOf(template, templateConditions.accessPlanValid);
  return planValid?.reason === fieldsIgnored ? planValid.message : '';
}

const waitingStates = ['Pending', 'Scheduled', 'Claimable'] as const;

/** By the condition Ready, its status, and `spec.revoked`. */
export function stateOf(request: KubeObject): RequestState {
  const [spec, status] = [specOf(request), statusOf(request)];
  const { approval, ended, grant } = status;
  const { reason = '', message = '' } = readyOf(request) ?? {};
  const stateWith = (state: State, code = reason, why = message): RequestState => ({
    endsMs: parseTime(text(status.expiresAt ?? grant?.expiresAt)),
    pod: text(status.podName),
    state,
    why,
    code,
  });
  if (ended?.how === 'Denied') return stateWith('Denied', ended.reason);
  if (ended) return stateWith('Ended', ended.how, `${ended.reason}: ${message}`);
  // Until the server writes that it closed the access, the grant may be open.
  const closingState: State = grant ? 'Ending' : 'Ended';
  const valid = conditionOf(request, requestConditions.accessStillValid);
  if (grant && valid?.status === 'Unknown') return stateWith('Ending', valid.reason, valid.message);
  if (spec.revoked) return stateWith(closingState, 'Revoked', spec.revokedReason ?? 'revoked');
  if (request.metadata.deletionTimestamp !== undefined) return stateWith(closingState, 'Deleted', 'deleted');
  if (status.ready) return stateWith('Open', '', '');
  // The pod is ready, but the command of the template does not fit it.
  if (grant && conditionOf(request, requestConditions.accessResourcesReady)?.status === 'True')
    return stateWith('Open', reason, `${reason}: ${message}. Ask the author of the template to correct it`);
  if (grant) return stateWith('Opening');
  return stateWith(waitingStates.find((one) => one === approval?.state) ?? 'New');
}

/** As `kubectl get` shows it: how it ended. */
export function stateText(request: KubeObject): string {
  const { state, code } = stateOf(request);
  return state === 'Ended' && code !== 'Deleted' ? code : state;
}

/** Denied or ended: the server has closed its access. */
export const isFinal = (state: State): boolean => state === 'Denied' || state === 'Ended';
/** Access that is open may last until the server closes it. */
export const cannotOpen = (state: State): boolean => isFinal(state) || state === 'Ending';

/** Whom to ask if the message of a denial addresses the author of the template; empty otherwise. */
export const whomToAsk = (code: string): string =>
  entryOf(code)?.topic === 'Templates' ? 'Ask the author of the template to correct it, then create a new request' : '';

/** What the requester of a denied request can do; empty if unknown. */
export const remedyOf = (code: string): string => whomToAsk(code) || (entryOf(code)?.remedy ?? '');

const entryOf = (code: string) => codeEntries.find((entry) => entry.code === code);
