import type { StartConfig } from '../../api/access/access-config.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { formatTime, parseTime } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { durationText, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { Violation } from './policy.ts';
import { reasonConfigViolation } from './reason.ts';
import { sessionViolations } from './session-policy.ts';
import { isInWindow, nextWindowStart, windowsViolations } from './start-windows.ts';

/** For `spec.startAt`: clocks differ, and a request takes time to arrive. */
const toleranceMs = 60_000;

/** `approvals` and `emergency` do not go with grants to the allowed groups. */
export function grantToViolations({ grantTo, approvals, emergency }: AccessConfig): Violation[] {
  if (grantTo !== 'AllowedGroups') return [];
  return [...(approvals ? ['approvals'] : []), ...(emergency ? ['emergency'] : [])].map((field) => ({
    code: 'InvalidTemplate',
    message:
      `spec.accessConfig.grantTo is AllowedGroups, and spec.accessConfig.${field} is set; approved and emergency access is for the ` +
      `requester only: set grantTo to Requester, or remove ${field}`,
    field: 'spec.accessConfig.grantTo',
    status: 422,
  }));
}

/** The leader checks again what the webhook denies: a template may be stored without calling it. */
export function templateSettingsViolation(config: AccessConfig): Violation | undefined {
  return (
    grantToViolations(config)[0] ??
    sessionViolations(config)[0] ??
    reasonConfigViolation(config.reason) ??
    windowsViolations(config.start?.windows ?? [])[0]
  );
}

/** `askedAtMs` (epoch ms): a start that was allowed at the creation stays allowed. */
export function startViolation(
  startAt: string | undefined,
  config: StartConfig | undefined,
  askedAtMs: number,
): Violation | undefined {
  if (startAt === undefined) return undefined;
  const { maxAhead, windows } = config ?? {};
  if (maxAhead === undefined) return refuse('is set; the template does not allow it; omit it', 403);
  const startMs = parseTime(startAt);
  if (startMs === undefined) {
    return refuse(`is ${quote(startAt)}; write a time as in RFC 3339, for example 2026-11-22T20:00:00Z`, 422);
  }
  if (startMs < askedAtMs - toleranceMs) {
    return refuse(`is ${startAt}, which has passed; write a later time, or omit it to start as soon as possible`, 422);
  }
  const ahead = parseGoDuration(maxAhead);
  const aheadNs = 'ns' in ahead ? ahead.ns : 0n;
  const latestMs = askedAtMs + toMilliseconds(aheadNs);
  if (startMs > latestMs + toleranceMs) {
    return refuse(
      `is ${startAt}; the template allows ${durationText(aheadNs)} ahead, which is until ${formatTime(latestMs)}: write an earlier time`,
      422,
    );
  }
  if (!windows || isInWindow(windows, startMs)) return undefined;
  const next = nextWindowStart(windows, startMs);
  const remedy =
    next === undefined ? 'write another time' : `the next window opens at ${formatTime(next)}: write a time in it`;
  return refuse(`is ${startAt}, when no window of the template is open; ${remedy}`, 422);
}

const refuse = (why: string, status: Violation['status']): Violation => ({
  code: 'InvalidRequest',
  message: `spec.startAt ${why}`,
  field: 'spec.startAt',
  status,
});
