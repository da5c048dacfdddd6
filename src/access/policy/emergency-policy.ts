import type { ReasonConfig } from '../../api/access/access-config.ts';
import type { AccessConfig } from '../../api/access/template-spec.ts';
import { parseGoDuration } from '../../kit/go-duration.ts';
import { listNames } from './names.ts';
import type { Violation } from './policy.ts';

/** Characters, if the template has no `reason`. */
const minReasonLength = 10;

interface EmergencySpec {
  readonly emergency?: boolean;
  readonly startAt?: string;
}

/** The caller's earlier emergency access through the same template. */
export interface OverdueReview {
  readonly request: string;
  readonly requestUid: string;
  /** RFC 3339. */
  readonly reviewBy: string;
}

/** `EmergencyNotAllowed`: not by the template, not for these groups, or not with `startAt`. */
export function emergencyViolation(
  { emergency, startAt }: EmergencySpec,
  groups: readonly string[],
  config: AccessConfig,
): (Violation & { readonly remedy: string }) | undefined {
  if (!emergency) return undefined;
  const refuse = (found: string, remedy: string) => ({
    code: 'EmergencyNotAllowed' as const,
    message: `spec.emergency is true, and ${found}; ${remedy}`,
    field: 'spec.emergency',
    status: 403 as const,
    remedy,
  });
  if (!config.emergency) return refuse('the template allows no emergency access', usualRemedy(groups, config));
  const allowed = config.emergency.groups;
  if (!groups.some((group) => allowed.includes(group))) {
    const found = `you are in none of the groups ${listNames(allowed)}, to which the template allows emergency access`;
    return refuse(found, usualRemedy(groups, config));
  }
  if (startAt === undefined) return undefined;
  return refuse('emergency access starts at once', 'omit spec.startAt or spec.emergency');
}

/** A clause. Outside `allowedGroups`, usual access takes permissions that were not checked. */
function usualRemedy(groups: readonly string[], { allowedGroups, approvals, emergency }: AccessConfig): string {
  if (groups.some((group) => allowedGroups.includes(group)))
    return `omit spec.emergency${approvals ? ', and wait for approvals' : ''}`;
  return emergency
    ? `ask an administrator for membership in one of the groups ${listNames(emergency.groups)}, or name another template`
    : 'name another template, because you are in none of the allowedGroups of this one either';
}

/** An earlier emergency of the caller through this template was not reviewed in time. */
export function overdueViolation(
  { emergency }: EmergencySpec,
  overdue: OverdueReview | undefined,
): Violation | undefined {
  if (!emergency || !overdue) return undefined;
  return {
    code: 'ReviewOverdue',
    message:
      `your emergency access by request ${overdue.request} (uid ${overdue.requestUid}) was due for review by ` +
      `${overdue.reviewBy}; ask another person with the verb approve on the template to create an AccessVote for it with about: Review`,
    field: 'spec.emergency',
    status: 403,
  };
}

/** Whose members may request. */
export const decidingGroupsOf = (
  { emergency }: EmergencySpec,
  config: Pick<AccessConfig, 'allowedGroups' | 'emergency'>,
): readonly string[] => (emergency ? (config.emergency?.groups ?? []) : config.allowedGroups);

/** An emergency always requires a reason. */
export function reasonConfigOf({ emergency }: EmergencySpec, { reason }: AccessConfig): ReasonConfig | undefined {
  if (!emergency) return reason;
  if (!reason) return { minLength: minReasonLength, prompt: 'what is broken, and what you do about it' };
  return { ...reason, minLength: Math.max(reason.minLength, 1) };
}

/** With the `maxDuration` that applies to the request. */
export function durationBoundsOf<Config extends Pick<AccessConfig, 'maxDuration' | 'emergency'>>(
  { emergency }: EmergencySpec,
  config: Config,
): Config & { readonly isEmergencyMaximum?: boolean } {
  const limit = emergency ? config.emergency?.maxDuration : undefined;
  if (limit === undefined) return config;
  const [templateMax, emergencyMax] = [parseGoDuration(config.maxDuration), parseGoDuration(limit)];
  const isShorter = 'ns' in templateMax && 'ns' in emergencyMax && emergencyMax.ns < templateMax.ns;
  return isShorter ? { ...config, maxDuration: limit, isEmergencyMaximum: true } : config;
}
