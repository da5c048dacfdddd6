import { isDeepStrictEqual } from 'node:util';
import type { Grant } from '../../api/access/grant.ts';
import { limitedCondition, type RequestCondition } from '../../api/access/names.ts';
import type {
  ExtensionStatus,
  RequestApproval,
  RequestChild,
  RequestStatus as StoredStatus,
} from '../../api/access/status.ts';
import { sameConditions } from '../../api/conditions.ts';
import type { Condition } from '../../api/object.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { AccessKind } from '../access-kind.ts';
import { type AccessConditionUpdate, failure, success } from '../conditions.ts';
import { firstLookMs, type PolicyCheck, policiesAwaited, policyRetryMs } from '../policies/policy-check.ts';
import type { Violation } from '../policy/policy.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import { withConditions } from './request-conditions.ts';
import { shortenedAccess } from './shortened-access.ts';

/** One merge patch writes these. */
export interface RequestStatusPatch extends Readonly<Pick<StoredStatus, 'grant' | 'ended' | 'expiresAt' | 'podName'>> {
  /** Null removes it. */
  readonly accessMessage?: string | null;
  /** Null removes it. */
  readonly approval?: RequestApproval | null;
  /** Null removes it. */
  readonly reasonLink?: string | null;
  readonly extensions?: readonly ExtensionStatus[];
  readonly children?: readonly RequestChild[];
  readonly conditions: readonly Condition[];
  readonly ready: boolean;
}

interface GrantDetails {
  /** The message of AccessDurationsValid. */
  readonly duration: string;
  /** One clause for each limit or request that the caps of the template set or lowered. */
  readonly limits: readonly string[];
  /** The URL for the reason of the request. */
  readonly reasonLink?: string | undefined;
  /** Present if the duration counts from the opening of access (`countsFromOpening`). */
  readonly approved?: ApprovalUpdate | undefined;
}

export interface ApprovalUpdate {
  readonly approval: RequestApproval;
  readonly condition: AccessConditionUpdate<RequestCondition>;
}

/** `nowMs` (epoch ms), here and below, is the time of conditions that change. */
export const waitingStatus = (
  request: RequestView,
  { approval, condition }: ApprovalUpdate,
  reasonLink: string | undefined,
  nowMs: number,
): RequestStatusPatch => ({
  approval,
  reasonLink: reasonLink ?? null,
  ...withConditions(request, nowMs, [condition]),
});

/** No child exists yet. */
export function grantedStatus(
  request: RequestView,
  grant: Grant,
  details: GrantDetails,
  nowMs: number,
): RequestStatusPatch {
  const { approved, reasonLink } = details;
  const endMs = parseTime(grant.expiresAt) ?? 0;
  const shortened = shortenedAccess({ ...request, grant }, { endMs, grantedEndMs: endMs });
  return {
    grant,
    expiresAt: grant.expiresAt,
    podName: grant.pod.name,
    ...(approved ? { approval: approved.approval } : {}),
    reasonLink: reasonLink ?? null,
    ...withConditions(request, nowMs, [
      ...(approved ? [approved.condition] : []),
      success(
        'TargetTemplateExists',
        `${grant.template.kind} ${grant.template.name}, generation ${grant.template.generation}`,
      ),
      ...(details.limits.length > 0 ? [limitedPod(details.limits)] : []),
      success('AccessDurationsValid', details.duration),
      ...(shortened ? [shortened] : []),
      success('AccessStillValid', `until ${grant.expiresAt}`),
    ]),
  };
}

const limitedPod = (limits: readonly string[]): AccessConditionUpdate<RequestCondition> => ({
  type: limitedCondition,
  status: 'True',
  reason: 'LimitedByTemplate',
  message: limits.join('; '),
});

/** Waits for the policies, and says so once the leader has looked. Epoch ms of the next try. */
export async function awaitPolicies(
  request: RequestView,
  { policies, status, clock }: { policies: PolicyCheck; status: StatusWriter; clock: Clock },
  signal: AbortSignal,
): Promise<number> {
  const nowMs = clock.now();
  if (policies.isFirstLook) return nowMs + firstLookMs;
  const unproven = failure('AccessResourcesReady', 'PoliciesMissing', policiesAwaited);
  const next = withConditions(request, nowMs, [unproven]);
  if (!isUnchanged(request, next)) await status.write(request, next, signal);
  return nowMs + policyRetryMs;
}

/** If the last extension is granted, access ends at its `expiresAt`. */
export function extensionStatus(
  request: RequestView,
  extensions: readonly ExtensionStatus[],
  nowMs: number,
): RequestStatusPatch {
  const expiresAt = extensions.at(-1)?.expiresAt;
  if (expiresAt === undefined) return { extensions, ...withConditions(request, nowMs, []) };
  return {
    extensions,
    expiresAt,
    ...withConditions(request, nowMs, [success('AccessStillValid', `until ${expiresAt}`)]),
  };
}

export const approvalStatus = (
  request: RequestView,
  approval: RequestApproval,
  nowMs: number,
  updates: readonly AccessConditionUpdate<RequestCondition>[] = [],
): RequestStatusPatch => ({
  approval,
  ...withConditions(request, nowMs, updates),
});

export type AccessMessage = { readonly text: string } | { readonly violation: Violation };

export interface Progress {
  readonly children: readonly RequestChild[];
  /** A clause, such as `until 2026-11-21T09:30:00Z`. */
  readonly until: string;
  /** RFC 3339. */
  readonly expiresAt: string;
  /** See `shortenedAccess`. */
  readonly shortened: AccessConditionUpdate<RequestCondition> | undefined;
  readonly pod: PodView | undefined;
  readonly accessMessage: AccessMessage;
}

export function progressStatus(request: RequestView, progress: Progress, nowMs: number): RequestStatusPatch {
  const isPodReady = progress.pod?.ready === true;
  const { children, expiresAt } = progress;
  const updates: AccessConditionUpdate<RequestCondition>[] = [
    success('AccessStillValid', progress.until),
    ...(progress.shortened ? [progress.shortened] : []),
    success('AccessResourcesCreated', children.map((child) => `${child.kind} ${child.name}`).join(', ')),
    isPodReady
      ? success('AccessResourcesReady', `Pod ${progress.pod.name} is ready`)
      : failure(
          'AccessResourcesReady',
          'NotYetReady',
          progress.pod?.notReadyReason || 'the API server has not reported the Pod yet',
        ),
  ];
  if (!isPodReady) return { children, expiresAt, ...withConditions(request, nowMs, updates) };
  if ('violation' in progress.accessMessage) {
    updates.push(
      failure('AccessMessage', progress.accessMessage.violation.code, progress.accessMessage.violation.message),
    );
    return { children, expiresAt, ...withConditions(request, nowMs, updates) };
  }
  const { text } = progress.accessMessage;
  updates.push(success('AccessMessage', text));
  return {
    children,
    expiresAt,
    accessMessage: text,
    ...withConditions(request, nowMs, updates),
  };
}

/** Ignores the times of conditions, `ended`, `grant`, `podName`, and `accessMessage`. */
export function isUnchanged(request: RequestView, next: RequestStatusPatch): boolean {
  // Until access ends, the children do not change once the status lists them.
  const sameChildren = next.children === undefined || next.children.length === request.children.length;
  const sameApproval = next.approval === undefined || isDeepStrictEqual(next.approval, request.approval);
  const sameLink = next.reasonLink === undefined || next.reasonLink === (request.reasonLink ?? null);
  const sameExtensions = next.extensions === undefined || isDeepStrictEqual(next.extensions, request.extensions);
  const sameEnd = next.expiresAt === undefined || next.expiresAt === request.expiresAt;
  return (
    sameEnd &&
    sameChildren &&
    sameApproval &&
    sameLink &&
    sameExtensions &&
    request.ready === next.ready &&
    sameConditions(request.conditions, next.conditions)
  );
}

/** Writes the status of requests, with an optimistic lock on the version that the caller read. */
export class StatusWriter {
  readonly #deps: { readonly client: Client; readonly kind: AccessKind };
  /** By key. A store that lags behind must not cause a second write. */
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

  /** Rejects with a 409 ApiError if the request changed since it was read. */
  write(request: RequestView, status: RequestStatusPatch, signal: AbortSignal): Promise<RequestView> {
    const { client, kind } = this.#deps;
    return this.#written.call(request.key, async () => {
      const { approval } = status;
      // A merge patch keeps fields that it omits, so those of an earlier approval would remain.
      const replaced = approval ? { approval: { due: null, all: null, votes: null, ...approval } } : {};
      const metadata = { resourceVersion: request.resourceVersion, uid: request.uid };
      const patch = { metadata, status: { ...status, ...replaced } };
      const options = { subresource: 'status', signal };
      const view = viewRequest(await client.mergePatch(kind.requestResource, request, patch, options));
      if (view) return view;
      throw new Error(`the API server returned an unreadable ${kind.requestKind} ${request.key} for the status write`);
    });
  }

  /** From the store, or as this process wrote it since. */
  latest(key: string): RequestView | undefined {
    const stored = this.#deps.kind.requests.get(key);
    const latest = stored && this.#written.get(key);
    return latest?.uid === stored?.uid ? latest : stored;
  }

  /** `latest` then returns the request of the store. */
  forget(key: string): void {
    this.#written.forget(key);
  }
}
