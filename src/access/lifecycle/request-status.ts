import { isDeepStrictEqual } from 'node:util';
import type { Grant } from '../../api/access/grant.ts';
import { limitedCondition, type RequestCondition, recordingLostCondition } from '../../api/access/names.ts';
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
import type { Violation } from '../policy/policy.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';
import type { LostRecordingView } from '../stores/lost-recording-view.ts';
import { withConditions } from './request-conditions.ts';
import { shortenedAccess } from './shortened-access.ts';

/** The status fields of a request that one merge patch writes. */
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

/** Texts and links that explain a grant to the requester. */
interface GrantDetails {
  /** Why this duration was granted: the message of AccessDurationsValid. */
  readonly duration: string;
  /** The limits and requests that the caps of the template set or lowered in the access pod, one clause each. */
  readonly limits: readonly string[];
  /** The URL for the reason of the request; undefined if the template has no link, or the request no reason. */
  readonly reasonLink?: string | undefined;
  /** Present if the granted duration counts from the opening of access (`countsFromOpening`). */
  readonly approved?: ApprovalUpdate | undefined;
}

/** New values of `status.approval` and of its condition. */
export interface ApprovalUpdate {
  readonly approval: RequestApproval;
  readonly condition: AccessConditionUpdate<RequestCondition>;
}

/** The status while a request waits. `nowMs` (epoch ms), here and below, is the time of conditions that change. */
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

/** The status after the decision to grant. No child exists yet. `details` explain the decision to the requester. */
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

/** The status with these extensions. If the last one is granted, access ends at its `expiresAt`. */
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

/** The status with another `approval`, and with `updates` of conditions. */
export const approvalStatus = (
  request: RequestView,
  approval: RequestApproval,
  nowMs: number,
  updates: readonly AccessConditionUpdate<RequestCondition>[] = [],
): RequestStatusPatch => ({
  approval,
  ...withConditions(request, nowMs, updates),
});

/** The status with the condition that the recording of a session was lost. */
export const lostRecordingStatus = (
  request: RequestView,
  { name, at }: LostRecordingView,
  nowMs: number,
): RequestStatusPatch =>
  withConditions(request, nowMs, [
    {
      type: recordingLostCondition,
      status: 'True',
      reason: 'RecordingLost',
      message: `the recording of session ${name} was lost at ${at}, so it lacks what followed; the lines with the verdict unrecorded in the audit journal of the gateway name every such session`,
    },
  ]);

/** The rendered access message, or the reason why the server cannot render it. */
export type AccessMessage =
  | {
      readonly text: string;
      /** What can make the command fail: ends of sentences that begin with the command. Default: none. */
      readonly doubts?: readonly string[];
    }
  | { readonly violation: Violation };

/** The observed state of an open grant. */
export interface Progress {
  readonly children: readonly RequestChild[];
  /** The end of access as a clause, for example `until 2026-11-21T09:30:00Z`. */
  readonly until: string;
  /** RFC 3339. */
  readonly expiresAt: string;
  /** See `shortenedAccess`. */
  readonly shortened: AccessConditionUpdate<RequestCondition> | undefined;
  /** The granted pod from the store; undefined if the store does not have it. */
  readonly pod: PodView | undefined;
  readonly accessMessage: AccessMessage;
}

/** The status of an open grant: its children, whether its pod is ready, and the access message. */
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
  const { text, doubts = [] } = progress.accessMessage;
  // `commandNote` of the client finds the doubts by this text.
  const note = `may fail: it ${doubts.join('; it ')}. Ask the author of the template to correct it`;
  updates.push(success('AccessMessage', doubts.length === 0 ? text : `\`${text}\` ${note}`));
  return {
    children,
    expiresAt,
    accessMessage: text,
    ...withConditions(request, nowMs, updates),
  };
}

/**
 * Whether `next` changes nothing: the conditions (except for times), approval, link, extensions, end, number of children, and `ready` are
 * equal. Does not compare `ended`, the grant, `podName`, and the access message, which the condition AccessMessage repeats.
 */
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
      const { approval } = status;
      // A merge patch keeps fields that it omits. Fields of an earlier approval would remain, so `isUnchanged` would never be true again.
      const replaced = approval ? { approval: { until: null, all: null, votes: null, ...approval } } : {};
      const metadata = { resourceVersion: request.resourceVersion, uid: request.uid };
      const patch = { metadata, status: { ...status, ...replaced } };
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
