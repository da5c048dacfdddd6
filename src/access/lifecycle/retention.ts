import { approvalCondition } from '../../api/access/names.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { latestOpeningMs } from '../policy/opening.ts';
import type { RequestView } from '../stores/access-views.ts';
import { finalAtMs } from './request-conditions.ts';

/** What counts as `spec.duration` if that is absent or invalid, milliseconds. */
const defaultRetentionMs = 3_600_000;
/** How long a request that waited stays after the end of its wait, milliseconds. */
const afterWaitMs = 3_600_000;
/** Maximum part of `spec.duration` that counts, milliseconds. A longer duration does not keep a denied request for years. */
const maxRetentionMs = 24 * 3_600_000;

/**
 * Until when the server keeps a request without a grant, epoch ms: its creation plus `spec.duration`, which counts as 24 h at most, and as
 * 1 h if it is absent or invalid. If the request still waits, for example for approvals, the server keeps it for at least 1 h after the
 * latest time at which that wait can end. If it waited and was denied at `deniedMs` (epoch ms; default: `finalAtMs`), at least for 1 h
 * after the denial. `config` is that of its template; undefined if the template does not exist.
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

/**
 * The latest time until which the request waits, epoch ms: the later of `latestOpeningMs` and `status.approval.until`, or the one that is
 * defined. Undefined if neither is.
 */
function waitsUntilMs(request: RequestView, config: AccessConfig | undefined): number | undefined {
  const shownMs = parseTime(request.approval?.until ?? '');
  const latestMs = config && latestOpeningMs({ ...request, config });
  return latestMs === undefined ? shownMs : Math.max(latestMs, shownMs ?? latestMs);
}
