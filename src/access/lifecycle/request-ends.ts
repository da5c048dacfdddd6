import { approvalCondition } from '../../api/access/names.ts';
import type { ExtensionStatus } from '../../api/access/status.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { keyOf } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { Store } from '../../kube/store.ts';
import { longestAccessMs } from '../policy/duration-choice.ts';
import { durationBoundsOf } from '../policy/emergency-policy.ts';
import type { Extendable } from '../policy/extension-choice.ts';
import { latestOpeningMs } from '../policy/opening.ts';
import { accessEndMs, type RequestView, type TemplateView } from '../stores/access-views.ts';
import type { PodView } from '../stores/cluster-views.ts';

// All times here are epoch ms.

/** For a `spec.duration` that is absent or invalid. */
const defaultRetentionMs = 3_600_000;
/** After the end of a wait. */
const afterWaitMs = 3_600_000;
/** What counts of `spec.duration`: a long duration does not keep a denied request for years. */
const maxRetentionMs = 24 * 3_600_000;

/** `grant.startsAt`, else the creation of the request. */
export function accessStartMs({ grant, createdAtMs }: Pick<RequestView, 'grant' | 'createdAtMs'>): number {
  return parseTime(grant?.startsAt ?? '') ?? createdAtMs;
}

/** `accessEndMs`, or `retainedUntilMs` without a grant. */
export const requestEndMs = (request: RequestView, template: TemplateView | undefined): number =>
  accessEndMs(request) ?? retainedUntilMs(request, template?.spec.accessConfig);

/**
 * Until when a request without a grant stays: its creation plus `spec.duration`, and at least
 * `afterWaitMs` after its wait (for approvals, say) or its denial at `deniedMs`.
 */
export function retainedUntilMs(request: RequestView, config: AccessConfig | undefined, deniedMs?: number): number {
  const duration = parseGoDuration(request.spec.duration ?? '');
  const retentionMs = 'ns' in duration && duration.ns > 0n ? toMilliseconds(duration.ns) : defaultRetentionMs;
  const keptUntilMs = request.createdAtMs + Math.min(retentionMs, maxRetentionMs);
  const waited = request.conditions.some(({ type }) => type === approvalCondition);
  const waitEndMs = deniedMs === undefined ? waitsUntilMs(request, config) : waited ? deniedMs : undefined;
  return waitEndMs === undefined ? keptUntilMs : Math.max(keptUntilMs, waitEndMs + afterWaitMs);
}

/** The later of `latestOpeningMs` and `status.approval.due`. */
function waitsUntilMs(request: RequestView, config: AccessConfig | undefined): number | undefined {
  const shownMs = parseTime(request.approval?.due ?? '');
  const latestMs = config && latestOpeningMs({ ...request, config });
  return latestMs === undefined ? shownMs : Math.max(latestMs, shownMs ?? latestMs);
}

/** Undefined for the version of the grant, and while the store has not received the edit. */
export function editedTemplate({ grant }: RequestView, template: TemplateView | undefined): TemplateView | undefined {
  if (!grant || template?.uid !== grant.template.uid) return undefined;
  return template.generation > grant.template.generation ? template : undefined;
}

/**
 * By a later edit of the template, which never moves an end later: a shorter end has no effect if
 * another edit reverts it in time. Infinity without one, or if its duration is invalid.
 */
export function latestEndMs(request: RequestView, template: TemplateView | undefined): number {
  const edited = editedTemplate(request, template);
  const grantedMs = parseTime(request.grant?.expiresAt ?? '') ?? 0;
  // A new `extension.total` limits access that was extended before.
  const isExtended = (accessEndMs(request) ?? 0) > grantedMs;
  const maxMs = edited && longestAccessMs(durationBoundsOf(request.spec, edited.spec.accessConfig), isExtended);
  return maxMs === undefined ? Number.POSITIVE_INFINITY : accessStartMs(request) + maxMs;
}

/** Granted or refused: all before one that waits. */
export function decidedExtensions({ grant, extensions }: RequestView): readonly ExtensionStatus[] {
  const waiting = extensions.findIndex(({ state }) => state === 'Pending');
  return grant ? extensions.slice(0, waiting < 0 ? extensions.length : waiting) : [];
}

/** Present even after the access has ended; undefined if `accessEndMs` is. */
export function extendableOf(request: RequestView, pods: Pick<Store<PodView>, 'get'>): Extendable | undefined {
  const endMs = accessEndMs(request);
  if (endMs === undefined) return undefined;
  const decided = decidedExtensions(request);
  return {
    startMs: accessStartMs(request),
    endMs,
    decided: decided.length,
    granted: decided.filter(({ state }) => state === 'Granted').length,
    emergency: request.spec.emergency === true,
    podEndMs: pods.get(keyOf({ namespace: request.namespace, name: request.grant?.pod.name ?? '' }))?.deadlineMs,
  };
}
