import type { KubeObject } from '../api/object.ts';
import { formatTime, parseTime } from '../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { templateSpecOf } from './approver-text.ts';
import { specOf, stateOf } from './request-state.ts';

/** When the requester of a scheduled request can run `start`: `from … until …`, if at all. */
export function claimTimes(request: KubeObject, template: KubeObject | undefined): string | undefined {
  const { startAt, claimed } = specOf(request);
  const { claimWithin } = (template && templateSpecOf(template).accessConfig?.approvals) ?? {};
  // A request that waits for a window, and not for startAt, was claimed already.
  if (stateOf(request).state !== 'Scheduled' || claimed || startAt === undefined || claimWithin === undefined)
    return undefined;
  const [startMs, within] = [parseTime(startAt), parseGoDuration(claimWithin)];
  if (startMs === undefined || !('ns' in within)) return undefined;
  return `from ${formatTime(startMs)} until ${formatTime(startMs + toMilliseconds(within.ns))}`;
}
