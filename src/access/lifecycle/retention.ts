import { approvalCondition } from '../../api/access/names.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseTime } from '../../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import { latestOpeningMs } from '../policy/opening.ts';
import type { RequestView } from '../stores/access-views.ts';
import { finalAtMs } from './request-conditions.ts';

/** How long a request without a grant and without a valid duration stays, milliseconds. */
const defaultRetentionMs = 3_600_000;
/**
 * How long a request without a grant stays at most, milliseconds. So the requester can read the denial for a day, and a long
 * `spec.duration` does not keep denied requests for years.
 */
const maxRetentionMs = 24 * 3_600_000;

/**
 * When the server ends a request without a grant, epoch ms: `spec.duration` after its creation, but after at most 24 h, and after 1 h if
 * the duration is absent or invalid. A request that waits stays at least until an hour after its wait can end or, once it was denied at
 * `deniedMs` (epoch ms), until an hour after that. `config` is that of its template; undefined if the template does not exist.
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
  return waitEndMs === undefined ? keptUntilMs : Math.max(keptUntilMs, waitEndMs + defaultRetentionMs);
}

/**
 * The latest time until which the request waits, epoch ms; undefined if it need not wait. Without its template, `status.approval.until`.
 */
const waitsUntilMs = (request: RequestView, config: AccessConfig | undefined): number | undefined =>
  (config && latestOpeningMs({ ...request, config })) ?? parseTime(request.approval?.until ?? '');
