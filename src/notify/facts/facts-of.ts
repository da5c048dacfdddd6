// What there is to tell about a request, derived from its present state alone: the same facts with
// the same ids after a restart, from another replica, and however many events were missed.

import { accessEndMs } from '../../access/stores/access-views.ts';
import type { GrantedRule, TemplateRule } from '../../api/access/grant.ts';
import { approvalCondition, requestConditions } from '../../api/access/names.ts';
import type { AccessEvent } from '../../api/notify/events.ts';
import { parseTime } from '../../kit/clock.ts';
import { shorten } from '../../kit/shorten.ts';
import { type Fact, factId } from '../fact.ts';
import type { NotifiedRequest, NotifiedSession, NotifiedTemplate } from '../stores.ts';

/** Nothing is told later than this after it happened. */
export const tellableMs = 24 * 3_600_000;
/** Access ends soon: at most this long before its end, and at most a fifth of the access. */
const endingMs = 5 * 60_000;

export interface FoundFact extends Fact {
  /** Until then, `atMs` may change with another write. Epoch ms. */
  readonly unsettledUntilMs?: number | undefined;
}

interface Found {
  readonly facts: readonly FoundFact[];
  /** When time alone adds a fact. */
  readonly nextAtMs?: number;
}

type Template = Pick<NotifiedTemplate, 'spec' | 'labels'>;

/** All times are epoch ms. */
export interface RequestContext {
  readonly template: Template | undefined;
  /** When this process saw that the request was deleted. */
  readonly deletedAtMs?: number | undefined;
}

/** Without those that are moot: decided otherwise meanwhile, over, or more than a day old. */
export function factsOf(request: NotifiedRequest, context: RequestContext, nowMs: number): Found {
  const of = factory(request, context);
  const { emergency = false, requester } = request.spec;
  const end = endOf(request, context);
  const createdMs = conditionMs(request, requestConditions.accessResourcesCreated);
  const isOpened = request.grant !== undefined && createdMs !== undefined;
  const ending = isOpened && !end ? endingOf(request) : undefined;
  const facts: (FoundFact | undefined)[] = [
    requester && !emergency && !request.grant && !end ? of('requested', request.createdAtMs) : undefined,
    emergency || end ? undefined : approvedOf(request, of),
    isOpened ? of(emergency ? 'emergency' : 'granted', createdMs) : undefined,
    ...(end ? [] : extensionsOf(request, of)),
    ending && ending.atMs <= nowMs ? of('ending', ending.atMs, {}, ending.n) : undefined,
    end && of(end.how === 'Denied' ? 'denied' : 'ended', end.atMs, { end: end.end }),
    ...(end ? reviewsOf(request, end.atMs, of) : []),
  ];
  const tellable = facts.filter((fact) => fact !== undefined && nowMs - fact.atMs < tellableMs) as FoundFact[];
  return ending && ending.atMs > nowMs ? { facts: tellable, nextAtMs: ending.atMs } : { facts: tellable };
}

/** `request` and its template, if this process knows them. */
export function sessionFactsOf(
  { uid, namespace, name, spec }: NotifiedSession,
  request: (RequestContext & { readonly view: NotifiedRequest }) | undefined,
  deletedAtMs: number | undefined,
  nowMs: number,
): Found {
  const { user, stream, container, recording } = spec;
  const session = { name, user: shorten(user, maxName), stream, recording };
  const common = {
    ...(request ? commonOf(request.view, request) : unknownRequest),
    request: { kind: spec.request.kind, namespace, name: spec.request.name, uid: request?.view.uid ?? '' },
    pod: spec.pod,
    session: container === undefined ? session : { ...session, container },
  };
  const of = (event: AccessEvent, atMs: number): Fact => ({ ...common, id: factId(uid, event), event, atMs });
  const facts = [
    of('session.started', parseTime(spec.startedAt) ?? nowMs),
    ...(deletedAtMs === undefined ? [] : [of('session.ended', deletedAtMs)]),
  ];
  return { facts: facts.filter(({ atMs }) => nowMs - atMs < tellableMs) };
}

type Of = (event: AccessEvent, atMs: number, over?: Partial<FoundFact>, n?: number) => FoundFact;

function factory(request: NotifiedRequest, context: RequestContext): Of {
  const common = commonOf(request, context);
  return (event, atMs, over = {}, n = 0) => {
    const skipped = event === 'emergency' ? { approvals: neededOf(context.template) } : {};
    return { ...common, ...skipped, ...over, id: factId(request.uid, event, n), event, atMs };
  };
}

// The schemas allow a hundred times as much, and each fact may wait in the outbox of each provider.
const maxName = 256;
const maxVoteReason = 512;
const maxItems = 10;

const unknownRequest = { template: '', requester: '', permissions: [], approvals: [], votes: [] };

function commonOf(request: NotifiedRequest, { template }: RequestContext): Omit<Fact, 'id' | 'event' | 'atMs'> {
  const { kind, namespace, name, uid, spec, grant } = request;
  const pod = grant?.pod.name ?? ('targetPod' in spec ? spec.targetPod : undefined);
  const untilMs = endMsOf(request);
  const duration = spec.duration ?? template?.spec.accessConfig.defaultDuration;
  return {
    request: { kind, namespace, name, uid },
    template: spec.templateName,
    requester: shorten(spec.requester?.username ?? '', maxName),
    ...(spec.reason === undefined ? {} : { reason: spec.reason }),
    ...(pod === undefined ? {} : { pod }),
    permissions: grant ? permissionsOf(grant.rules) : plannedPermissions(template),
    ...(grant || duration === undefined ? {} : { duration }),
    ...(untilMs === undefined ? {} : { untilMs }),
    approvals: approvalsOf(request, template),
    votes: votesOf(request),
  };
}

const shortNames: Readonly<Record<string, string>> = {
  'pods/exec': 'exec',
  'pods/attach': 'attach',
  'pods/portforward': 'port-forward',
};

function plannedPermissions(template: Template | undefined): string[] {
  if (!template) return [];
  const { exec = true, allow = [], rules = [] } = template.spec.accessConfig;
  const presets = allow.map((preset) => (preset === 'logs' ? 'get pods/log' : preset));
  return [...new Set([...(exec ? ['exec'] : []), ...presets, ...permissionsOf(rules)])];
}

function permissionsOf(rules: readonly (TemplateRule | GrantedRule)[]): string[] {
  const texts = rules.flatMap(({ resources, verbs }) =>
    resources
      // Each grant allows to read the pod.
      .filter((resource) => resource !== 'pods' || verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)))
      .map((resource) => shortNames[resource] ?? shorten(`${verbs.join(', ')} ${resource}`, maxName)),
  );
  return [...new Set(texts)].slice(0, 2 * maxItems);
}

const groupsOf = (groups: readonly string[] = []): string[] =>
  groups.slice(0, maxItems).map((group) => shorten(group, maxName));

const neededOf = (template: Template | undefined): Fact['approvals'] =>
  (template?.spec.accessConfig.approvals?.all ?? []).map(({ name, count = 1, groups }) => ({
    name,
    have: 0,
    need: count,
    groups: groupsOf(groups),
  }));

function approvalsOf({ approval, spec }: NotifiedRequest, template: Template | undefined): Fact['approvals'] {
  const needed = neededOf(template);
  if (!approval?.all) return spec.emergency ? [] : needed;
  return approval.all.map(({ name, have, need }) => ({
    name,
    have,
    need,
    groups: needed.find((one) => one.name === name)?.groups ?? [],
  }));
}

/** With a grant, the approvals that it names; other votes came later or were not needed. */
function votesOf({ approval, grant }: NotifiedRequest): Fact['votes'] {
  const granting = grant?.votes && new Set(grant.votes);
  const counted = (approval?.votes ?? []).filter(
    ({ ignored, decision, uid }) =>
      ignored === undefined && (decision === 'Deny' || granting === undefined || granting.has(uid)),
  );
  return counted.slice(-maxItems).map(({ voter, decision, reason }) => ({
    voter: shorten(voter, maxName),
    decision,
    ...(reason === undefined ? {} : { reason: shorten(reason, maxVoteReason) }),
  }));
}

/** When the condition became True. */
function conditionMs({ conditions }: NotifiedRequest, wanted: string): number | undefined {
  const found = conditions.find(({ type, status }) => type === wanted && status === 'True');
  return found && parseTime(found.lastTransitionTime);
}

/** Met, although access may still wait for its start, a claim, or the workload. */
function approvedOf(request: NotifiedRequest, of: Of): FoundFact | undefined {
  const { all = [], due, state } = request.approval ?? {};
  const isMet = state === 'Approved' || (all.length > 0 && all.every(({ have, need }) => have >= need));
  if (!isMet || !votesOf(request).some(({ decision }) => decision === 'Approve')) return undefined;
  const atMs = conditionMs(request, approvalCondition);
  if (atMs !== undefined) return of('approved', atMs);
  return of('approved', request.lastWriteMs, { unsettledUntilMs: parseTime(due ?? '') });
}

const endMsOf = (request: NotifiedRequest): number | undefined => {
  const grantedMs = accessEndMs(request);
  // An edit of the template may have shortened it.
  return grantedMs && Math.min(grantedMs, parseTime(request.expiresAt ?? '') ?? grantedMs);
};

function endOf(request: NotifiedRequest, { deletedAtMs }: RequestContext) {
  const { ended, grant, lastWriteMs } = request;
  if (ended) {
    const { how, reason: code, by } = ended;
    const end = { how, code, ...(by === undefined ? {} : { by: shorten(by, maxName) }) };
    return { how, atMs: parseTime(ended.at) ?? lastWriteMs, end };
  }
  if (deletedAtMs === undefined) return undefined;
  // Without a history, the leader of access deletes the request in the moment of its end.
  const isOver = grant !== undefined && (endMsOf(request) ?? deletedAtMs) <= deletedAtMs;
  const end = isOver ? { how: 'Expired', code: 'Expired' } : { how: 'Revoked', code: 'Deleted' };
  return { how: end.how, atMs: deletedAtMs, end };
}

function endingOf(request: NotifiedRequest): { readonly atMs: number; readonly n: number } | undefined {
  const endMs = endMsOf(request);
  if (endMs === undefined) return undefined;
  const startMs = parseTime(request.grant?.startsAt ?? '') ?? request.createdAtMs;
  const n = request.extensions.filter(({ state }) => state === 'Granted').length;
  return { atMs: endMs - Math.min(endingMs, Math.max(0, endMs - startMs) / 5), n };
}

function extensionsOf(request: NotifiedRequest, of: Of): FoundFact[] {
  if (!request.grant) return [];
  const unsettledUntilMs = endMsOf(request);
  return (request.spec.extensions ?? []).flatMap(({ by, reason }, position) => {
    const { state = 'Pending', expiresAt } = request.extensions[position] ?? {};
    if (state === 'Denied') return [];
    const index = position + 1;
    const untilMs = parseTime(expiresAt ?? '');
    const extension = { index, by, ...(reason === undefined ? {} : { reason }) };
    const over = { extension, unsettledUntilMs, ...(untilMs === undefined ? {} : { untilMs }) };
    // The status has no time of either.
    return [of(state === 'Granted' ? 'extended' : 'extension.requested', request.lastWriteMs, over, index)];
  });
}

function reviewsOf({ approval, grant }: NotifiedRequest, endedMs: number, of: Of): FoundFact[] {
  const reviewByMs = parseTime(approval?.due ?? '');
  if (!grant || reviewByMs === undefined) return [];
  if (approval?.state === 'ReviewOwed') return [of('review-owed', endedMs, { reviewByMs })];
  return approval?.state === 'ReviewOverdue' ? [of('review-overdue', reviewByMs, { reviewByMs })] : [];
}
