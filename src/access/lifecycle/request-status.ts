import type { Grant } from '../../api/access/grant.ts';
import { type RequestCondition, requestConditions } from '../../api/access/names.ts';
import type { RequestChild, RequestStatus as StoredStatus } from '../../api/access/status.ts';
import { mergeConditions, sameConditions } from '../../api/conditions.ts';
import type { Condition } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { AccessKind } from '../access-kind.ts';
import { allTrue, type Finding, failure, isSummary, type Summary, success, summarized } from '../conditions.ts';
import type { Violation } from '../policy/policy.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';

/** The status of a request, as one merge patch writes it. */
export interface RequestStatus extends Readonly<Pick<StoredStatus, 'grant' | 'podName' | 'accessMessage'>> {
  readonly children?: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

/** Status right after the decision: the grant is fixed, and no child exists yet. `details` explain the decision to the requester. */
export function grantedStatus(
  request: RequestView,
  grant: Grant,
  details: { readonly duration: string; readonly notes: readonly string[] },
  nowMs: number,
): RequestStatus {
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

/** Condition type and reason by denial code; `AccessResourcesCreated` shows all other codes. */
const conditionOfCode: Readonly<Record<string, readonly [RequestCondition, string]>> = {
  TemplateNotFound: ['TargetTemplateExists', 'NotFound'],
  TemplateNotReady: ['TargetTemplateExists', 'TemplateNotReady'],
  InvalidDuration: ['AccessDurationsValid', 'NotAcceptable'],
  TooLate: ['AccessStillValid', 'Timeout'],
};

/** The condition that shows a denial with `code`. */
export const conditionFor = (code: string): RequestCondition => conditionOfCode[code]?.[0] ?? 'AccessResourcesCreated';

/** Status of a final denial, before or after the grant was fixed. */
export function deniedStatus(request: RequestView, violation: Violation, nowMs: number): RequestStatus {
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

export interface Progress {
  readonly children: readonly RequestChild[];
  /** When access ends, as a clause: `until 2026-11-21T09:30:00Z`. */
  readonly until: string;
  /** The pod as the store has it; undefined while the store does not have it. */
  readonly pod: PodView | undefined;
  /** The rendered access message, or the reason why it cannot be rendered. */
  readonly accessMessage: { readonly text: string } | { readonly refusal: Violation };
}

/** Status of an open grant: its children, whether the pod is ready, and how to use it. */
export function progressStatus(request: RequestView, progress: Progress, nowMs: number): RequestStatus {
  const usable = progress.pod?.ready === true;
  const findings: Finding<RequestCondition>[] = [
    success('AccessStillValid', progress.until),
    success('AccessResourcesCreated', progress.children.map((child) => `${child.kind} ${child.name}`).join(', ')),
    usable
      ? success('AccessResourcesReady', `Pod ${progress.pod.name} is ready`)
      : failure(
          'AccessResourcesReady',
          'NotYetReady',
          progress.pod?.waiting || 'the API server has not reported the Pod yet',
        ),
  ];
  if (!usable) return { children: progress.children, ...withConditions(request, nowMs, findings) };
  if ('refusal' in progress.accessMessage) {
    findings.push(
      failure('AccessMessage', progress.accessMessage.refusal.code, progress.accessMessage.refusal.message),
    );
    return { children: progress.children, ...withConditions(request, nowMs, findings) };
  }
  findings.push(success('AccessMessage', progress.accessMessage.text));
  return {
    children: progress.children,
    accessMessage: progress.accessMessage.text,
    ...withConditions(request, nowMs, findings),
  };
}

/** Whether `next` equals the current status except for times. */
export function isUnchanged(request: RequestView, next: RequestStatus): boolean {
  const childrenKnown = next.children === undefined || next.children.length === request.children.length;
  return childrenKnown && request.ready === next.ready && sameConditions(request.conditions, next.conditions);
}

function withConditions(
  request: RequestView,
  nowMs: number,
  findings: readonly Finding<RequestCondition>[],
): Pick<RequestStatus, 'conditions' | 'ready'> {
  const conditions = mergeConditions(request.conditions, findings, nowMs, { generation: request.generation });
  const ready = allTrue(conditions, Object.values(requestConditions));
  return { conditions: summarized(request.generation, conditions, summaryOf(conditions, ready), nowMs), ready };
}

function summaryOf(conditions: readonly Condition[], ready: boolean): Summary {
  if (ready) return { is: 'ready', message: 'access is open' };
  const failed = (which: (condition: Condition) => boolean): Condition | undefined =>
    conditions.find((condition) => condition.status === 'False' && which(condition));
  const final = failed(isFinal) ?? failed(({ type }) => type === 'AccessMessage');
  if (final) return { is: 'stalled', reason: final.reason, message: final.message };
  const waiting = failed(({ type }) => type === 'AccessResourcesReady');
  return {
    is: 'reconciling',
    reason: waiting?.reason ?? 'Progressing',
    message: waiting?.message ?? 'access is being opened',
  };
}

/** Writes the status of requests. Each write is guarded by the resourceVersion that the decision was based on. */
export class StatusWriter {
  readonly #deps: { readonly client: Client; readonly kind: AccessKind };
  /** By key: the request as this process wrote it, so that a store that lags behind does not make it act twice. */
  readonly #known: WriteThroughCache<RequestView>;

  constructor(deps: { readonly client: Client; readonly kind: AccessKind; readonly clock: Clock }) {
    const { kind, clock } = deps;
    this.#deps = deps;
    this.#known = new WriteThroughCache({
      watched: (key) => kind.requests.get(key),
      uidOf: ({ uid }) => uid,
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    });
  }

  /** Resolves to the request as written; rejects with a 409 ApiError when it has changed since `request` was read. */
  write(request: RequestView, status: RequestStatus, signal: AbortSignal): Promise<RequestView> {
    const { client, kind } = this.#deps;
    return this.#known.call(request.key, async () => {
      const patch = { metadata: { resourceVersion: request.resourceVersion, uid: request.uid }, status };
      const options = { subresource: 'status', signal };
      const view = viewRequest(await client.mergePatch(kind.requestResource, request, patch, options));
      if (view) return view;
      throw new Error(`the API server returned an unreadable ${kind.requestKind} ${request.key} for the status write`);
    });
  }

  /** The request under `key` as the store has it, or as this process wrote it since; undefined once the store does not have it. */
  latest(key: string): RequestView | undefined {
    const stored = this.#deps.kind.requests.get(key);
    const known = stored && this.#known.get(key);
    return known?.uid === stored?.uid ? known : stored;
  }

  forget(key: string): void {
    this.#known.forget(key);
  }
}
