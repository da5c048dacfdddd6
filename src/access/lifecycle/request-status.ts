import type { Grant } from '../../api/access/grant.ts';
import { type RequestCondition, requestConditions } from '../../api/access/names.ts';
import type { RequestChild, RequestStatus as StoredStatus } from '../../api/access/status.ts';
import { mergeConditions, sameConditions } from '../../api/conditions.ts';
import type { Condition } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { AccessKind } from '../access-kind.ts';
import {
  type AccessConditionUpdate,
  allTrue,
  failure,
  isSummary,
  type Summary,
  success,
  summarized,
} from '../conditions.ts';
import type { Violation } from '../policy/policy.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';

/** The status fields of a request that one merge patch writes. */
export interface RequestStatusPatch extends Readonly<Pick<StoredStatus, 'grant' | 'podName' | 'accessMessage'>> {
  readonly children?: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

/** The status after the decision to grant. No child exists yet. `details` explain the decision to the requester. */
export function grantedStatus(
  request: RequestView,
  grant: Grant,
  details: { readonly duration: string; readonly notes: readonly string[] },
  nowMs: number,
): RequestStatusPatch {
  return {
    grant,
    podName: grant.pod.name,
    ...withConditions(request, nowMs, [
      success(
        'TargetTemplateExists',
        [
          `${grant.template.kind} ${grant.template.name}, generation ${grant.template.generation}`,
          ...details.notes,
        ].join('; '),
      ),
      success('AccessDurationsValid', details.duration),
      success('AccessStillValid', `until ${grant.expiresAt}`),
    ]),
  };
}

/** Condition type and reason by denial code. `AccessResourcesCreated` shows all other codes. */
const conditionOfCode: Readonly<Record<string, readonly [RequestCondition, string]>> = {
  TemplateNotFound: ['TargetTemplateExists', 'NotFound'],
  TemplateNotReady: ['TargetTemplateExists', 'TemplateNotReady'],
  InvalidDuration: ['AccessDurationsValid', 'NotAcceptable'],
  TooLate: ['AccessStillValid', 'Timeout'],
};

/** The condition that shows a denial with `code`. */
export const conditionFor = (code: string): RequestCondition => conditionOfCode[code]?.[0] ?? 'AccessResourcesCreated';

/** The status of a final denial, before or after the grant was written. */
export function deniedStatus(request: RequestView, violation: Violation, nowMs: number): RequestStatusPatch {
  const [type, reason] = conditionOfCode[violation.code] ?? (['AccessResourcesCreated', violation.code] as const);
  return withConditions(request, nowMs, [failure(type, reason, violation.message)]);
}

/** Whether the status records a final denial. */
export function isDenied(request: RequestView): boolean {
  return request.conditions.some(isFinal);
}

/** AccessResourcesReady and AccessMessage can be False temporarily. */
const isFinal = ({ type, status }: Condition): boolean =>
  status === 'False' && type !== 'AccessResourcesReady' && type !== 'AccessMessage' && !isSummary({ type });

/** The observed state of an open grant. */
export interface Progress {
  readonly children: readonly RequestChild[];
  /** The end of access as a clause: `until 2026-11-21T09:30:00Z`. */
  readonly until: string;
  /** The pod from the store; undefined until the store has it. */
  readonly pod: PodView | undefined;
  /** The rendered access message, or the reason why it cannot be rendered. */
  readonly accessMessage: { readonly text: string } | { readonly violation: Violation };
}

/** The status of an open grant: its children, whether its pod is ready, and the access message. */
export function progressStatus(request: RequestView, progress: Progress, nowMs: number): RequestStatusPatch {
  const isPodReady = progress.pod?.ready === true;
  const updates: AccessConditionUpdate<RequestCondition>[] = [
    success('AccessStillValid', progress.until),
    success('AccessResourcesCreated', progress.children.map((child) => `${child.kind} ${child.name}`).join(', ')),
    isPodReady
      ? success('AccessResourcesReady', `Pod ${progress.pod.name} is ready`)
      : failure(
          'AccessResourcesReady',
          'NotYetReady',
          progress.pod?.notReadyReason || 'the API server has not reported the Pod yet',
        ),
  ];
  if (!isPodReady) return { children: progress.children, ...withConditions(request, nowMs, updates) };
  if ('violation' in progress.accessMessage) {
    updates.push(
      failure('AccessMessage', progress.accessMessage.violation.code, progress.accessMessage.violation.message),
    );
    return { children: progress.children, ...withConditions(request, nowMs, updates) };
  }
  updates.push(success('AccessMessage', progress.accessMessage.text));
  return {
    children: progress.children,
    accessMessage: progress.accessMessage.text,
    ...withConditions(request, nowMs, updates),
  };
}

/**
 * Whether the conditions (except for times), the number of children, and `ready` are equal. Compares neither the grant nor the pod name.
 */
export function isUnchanged(request: RequestView, next: RequestStatusPatch): boolean {
  // The children of a request never change once the status lists them.
  const sameChildren = next.children === undefined || next.children.length === request.children.length;
  return sameChildren && request.ready === next.ready && sameConditions(request.conditions, next.conditions);
}

function withConditions(
  request: RequestView,
  nowMs: number,
  updates: readonly AccessConditionUpdate<RequestCondition>[],
): Pick<RequestStatusPatch, 'conditions' | 'ready'> {
  const conditions = mergeConditions(request.conditions, updates, nowMs, { generation: request.generation });
  const ready = allTrue(conditions, Object.values(requestConditions));
  return { conditions: summarized(request.generation, conditions, summaryOf(conditions, ready), nowMs), ready };
}

function summaryOf(conditions: readonly Condition[], ready: boolean): Summary {
  if (ready) return { state: 'ready', message: 'access is open' };
  const failed = (matches: (condition: Condition) => boolean): Condition | undefined =>
    conditions.find((condition) => condition.status === 'False' && matches(condition));
  const final = failed(isFinal) ?? failed(({ type }) => type === 'AccessMessage');
  if (final) return { state: 'stalled', reason: final.reason, message: final.message };
  const waiting = failed(({ type }) => type === 'AccessResourcesReady');
  return {
    state: 'reconciling',
    reason: waiting?.reason ?? 'Progressing',
    message: waiting?.message ?? 'access is being opened',
  };
}

/** Writes the status of requests, with an optimistic lock on the resourceVersion of the request that the caller read. */
export class StatusWriter {
  readonly #deps: { readonly client: Client; readonly kind: AccessKind };
  /** By key: the request as this process wrote it, so that a store that lags behind does not cause a second write. */
  readonly #written: WriteThroughCache<RequestView>;

  constructor(deps: { readonly client: Client; readonly kind: AccessKind; readonly clock: Clock }) {
    const { kind, clock } = deps;
    this.#deps = deps;
    this.#written = new WriteThroughCache({
      watched: (key) => kind.requests.get(key),
      uidOf: ({ uid }) => uid,
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    });
  }

  /** Resolves to the request as written. Rejects as the client does: with a 409 ApiError if it changed since `request` was read. */
  write(request: RequestView, status: RequestStatusPatch, signal: AbortSignal): Promise<RequestView> {
    const { client, kind } = this.#deps;
    return this.#written.call(request.key, async () => {
      const patch = { metadata: { resourceVersion: request.resourceVersion, uid: request.uid }, status };
      const options = { subresource: 'status', signal };
      const view = viewRequest(await client.mergePatch(kind.requestResource, request, patch, options));
      if (view) return view;
      throw new Error(`the API server returned an unreadable ${kind.requestKind} ${request.key} for the status write`);
    });
  }

  /** The request from the store, or as this process wrote it since; undefined if the store does not have it. */
  latest(key: string): RequestView | undefined {
    const stored = this.#deps.kind.requests.get(key);
    const latest = stored && this.#written.get(key);
    return latest?.uid === stored?.uid ? latest : stored;
  }

  /** Discards what this process wrote for the key; `latest` then returns the request of the store. */
  forget(key: string): void {
    this.#written.forget(key);
  }
}
