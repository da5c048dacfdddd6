import type { RequestSpec, TemplateSpec } from '../api/access/kinds.ts';
import { fieldsIgnored, requestConditions, summaryConditions, templateConditions } from '../api/access/names.ts';
import { type RequestStatus, requestStateOf } from '../api/access/status.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { listIn, own } from '../kit/json-value.ts';
import { codeEntries } from './code-entries.ts';

/** As the server shows it; `Ending` if its end has begun, and the server has not closed it yet. */
export type State = NonNullable<RequestStatus['state']> | 'Ending';

/** All texts are from the object and may contain control characters. */
export interface RequestState {
  readonly state: State;
  /** What it waits for, why it ended, or that its command is missing. */
  readonly why: string;
  /** Of the denial or end, or the reason of the condition Ready. */
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

export function stateOf(request: KubeObject): RequestState {
  const status = statusOf(request);
  const { state = requestStateOf(status), ended, grant, ready, expiresAt, podName } = status;
  const { reason = '', message = '' } = readyOf(request) ?? {};
  const stateWith = (shown: State, code: string, why: string): RequestState => ({
    endsMs: parseTime(text(expiresAt ?? grant?.expiresAt)),
    pod: text(podName),
    state: shown,
    why,
    code,
  });
  if (isFinal(state)) {
    if (!ended) return stateWith(state, 'Deleted', 'deleted');
    return stateWith(state, ended.reason, state === 'Denied' ? message : `${ended.reason}: ${message}`);
  }
  const { revoked, revokedReason } = specOf(request);
  if (revoked) return stateWith('Ending', 'Revoked', revokedReason ?? 'revoked');
  if (request.metadata.deletionTimestamp !== undefined) return stateWith('Ending', 'Deleted', 'deleted');
  const valid = conditionOf(request, requestConditions.accessStillValid);
  // The server cannot delete its objects.
  if (grant && valid?.status === 'Unknown') return stateWith('Ending', valid.reason, valid.message);
  if (ready) return stateWith(state, '', '');
  const isUnusable = conditionOf(request, requestConditions.accessMessage)?.status === 'False';
  const why = `${reason}: ${message}. Ask the author of the template to correct it`;
  return stateWith(state, reason, isUnusable ? why : message);
}

const isPodReady = (request: KubeObject): boolean =>
  conditionOf(request, requestConditions.accessResourcesReady)?.status === 'True';

/** It has ended: the server has closed its access. */
export const isFinal = (state: State): boolean => !['Waiting', 'Open', 'Ending'].includes(state);
/** Access that is open may last until the server closes it. */
export const cannotOpen = (state: State): boolean => isFinal(state) || state === 'Ending';

/** Open, and its pod is ready, although its command may be missing. */
export const isUsable = (request: KubeObject): boolean =>
  stateOf(request).state === 'Open' && (statusOf(request).ready === true || isPodReady(request));

/** Whom to ask if the message of a denial addresses the author of the template; empty otherwise. */
export const whomToAsk = (code: string): string =>
  entryOf(code)?.topic === 'Templates' ? 'Ask the author of the template to correct it, then create a new request' : '';

/** What the requester of a denied request can do; empty if unknown. */
export const remedyOf = (code: string): string => whomToAsk(code) || (entryOf(code)?.remedy ?? '');

const entryOf = (code: string) => codeEntries.find((entry) => entry.code === code);
