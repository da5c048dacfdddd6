import { approvalCondition } from '../../api/access/names.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { latestOpeningMs } from '../policy/opening.ts';
import type { RequestView } from '../stores/access-views.ts';
import { finalAtMs } from './request-conditions.ts';

/** For a `spec.duration` that is absent or invalid. */
const defaultRetentionMs = 3_600_000;
/** Milliseconds after the end of a wait. */
const afterWaitMs = 3_600_000;
/** What counts of `spec.duration`: a long duration does not keep a denied request for years. */
const maxRetentionMs = 24 * 3_600_000;

/**
 * Until when a request without a grant stays, epoch ms: its creation plus `spec.duration`, and at
 * least `afterWaitMs` after its wait (for approvals, say) or its denial at `deniedMs`.
 */
export function retainedUntilMs(
  request: RequestView,
  config: AccessConfig | undefined,
  deniedMs = finalAtMs(request),
): number {
  const duration = parseGoDuration(request.spec.duration ?? '');
  const retentionMs = 'ns' in duration && duration.ns > 0n ? toMilliseconds(duration.ns) : defaultRetentionMs;
  const keptUntilMs = request.createdAtMs + Math.min(retentionMs, maxRetentionMs);
  const waited = request.conditions.some(({ type }) => type === approvalCondition);
  const waitEndMs = deniedMs === undefined ? waitsUntilMs(request, config) : waited ? deniedMs : undefined;
  return waitEndMs === undefined ? keptUntilMs : Math.max(keptUntilMs, waitEndMs + afterWaitMs);
}

/** Epoch ms: the later of `latestOpeningMs` and `status.approval.due`. */
function waitsUntilMs(request: RequestView, config: AccessConfig | undefined): number | undefined {
  const shownMs = parseTime(request.approval?.due ?? '');
  const latestMs = config && latestOpeningMs({ ...request, config });
  return latestMs === undefined ? shownMs : Math.max(latestMs, shownMs ?? latestMs);
}
