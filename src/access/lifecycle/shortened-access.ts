import { type RequestCondition, shortenedCondition } from '../../api/access/names.ts';
import { formatTime } from '../../kit/clock.ts';
import { durationText, parseGoDuration } from '../../kit/go-duration.ts';
import type { AccessConditionUpdate } from '../conditions.ts';
import type { RequestView } from '../stores/access-views.ts';
import { accessStartMs } from './request-ends.ts';

/**
 * The condition of shortened access. It is True if an edit of the template ends access at `endMs` before `grantedEndMs` (epoch ms, with all
 * extensions; reason `TemplateChanged`), or if access is shorter than requested (`LessThanAsked`). It becomes False (`AsGranted`) once a
 * later edit restores the end, or extensions reach the requested duration. Undefined if the access was never shortened.
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
