import { type RequestCondition, shortenedCondition } from '../../api/access/names.ts';
import { formatTime } from '../../kit/clock.ts';
import { durationText, parseGoDuration } from '../../kit/go-duration.ts';
import type { AccessConditionUpdate } from '../conditions.ts';
import type { RequestView } from '../stores/access-views.ts';
import { accessStartMs } from './request-ends.ts';

/**
 * True if an edit of the template (`TemplateChanged`) or less than was asked for (`LessThanAsked`)
 * shortens the access; False (`AsGranted`) once that is over. Undefined if it was never shortened.
 */
export function shortenedAccess(
  request: RequestView,
  { endMs, grantedEndMs }: { readonly endMs: number; readonly grantedEndMs: number },
): AccessConditionUpdate<RequestCondition> | undefined {
  const update = (status: 'True' | 'False', reason: string, message: string) =>
    ({ type: shortenedCondition, status, reason, message }) as const;
  if (endMs < grantedEndMs) {
    const message = `until ${formatTime(endMs)} instead of ${formatTime(grantedEndMs)}, because an edit of the template shortened it`;
    return update('True', 'TemplateChanged', message);
  }
  const asked = parseGoDuration(request.spec.duration ?? '');
  const grantedNs = BigInt(grantedEndMs - accessStartMs(request)) * 1_000_000n;
  if ('ns' in asked && asked.ns > grantedNs) {
    return update('True', 'LessThanAsked', `asked for ${durationText(asked.ns)}, granted ${durationText(grantedNs)}`);
  }
  const wasShorter = request.conditions.some(({ type }) => type === shortenedCondition);
  return wasShorter ? update('False', 'AsGranted', `until ${formatTime(endMs)}`) : undefined;
}
