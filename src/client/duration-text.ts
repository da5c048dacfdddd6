import { chooseDuration } from '../access/policy/duration-choice.ts';
import { durationBoundsOf } from '../access/policy/emergency-policy.ts';
import { setDeadlineMs } from '../access/policy/pod-deadline.ts';
import type { AccessConfig } from '../api/access/template-spec.ts';
import type { KubeObject } from '../api/object.ts';
import { parseTime } from '../kit/clock.ts';
import { templateSpecOf } from './approver-text.ts';
import { specOf, statusOf } from './request-state.ts';
import { lessThanAsked, span } from './times.ts';

interface Duration {
  /** Granted, or what the server would grant by the current template, if known. */
  readonly allowed: string | undefined;
  /** Undefined: the default of the template. */
  readonly asked: string | undefined;
  /** `allowed` is shorter than `asked` or, without that, than the default. */
  readonly isShortened: boolean;
}

function durationOf(request: KubeObject, template: KubeObject | undefined): Duration {
  const asked = specOf(request).duration;
  const ms = grantedMs(request) ?? (template && expectedMs(request, template));
  if (ms === undefined) return { allowed: undefined, asked, isShortened: false };
  const wanted = asked ?? (template && templateSpecOf(template).accessConfig?.defaultDuration);
  return { allowed: span(ms), asked, isShortened: wanted !== undefined && lessThanAsked(ms, wanted) !== undefined };
}

/** Without extensions, milliseconds; undefined before the grant. */
function grantedMs(request: KubeObject): number | undefined {
  const { grant } = statusOf(request);
  const startMs = parseTime(grant?.startsAt ?? request.metadata.creationTimestamp ?? '');
  const endMs = parseTime(grant?.expiresAt ?? '');
  return startMs === undefined || endMs === undefined ? undefined : endMs - startMs;
}

/** What the server would grant, milliseconds; undefined if it would refuse. */
function expectedMs(request: KubeObject, template: KubeObject): number | undefined {
  const [spec, templateSpec] = [specOf(request), templateSpecOf(template)];
  const config = (templateSpec.accessConfig ?? {}) as AccessConfig;
  const chosen = chooseDuration(spec.duration, durationBoundsOf(spec, config));
  return 'code' in chosen ? undefined : Math.min(chosen.grantedMs, setDeadlineMs(templateSpec));
}

/** In a cell: `30m`, `2h of 9h`, or, if no duration is known, `default`. */
export function shortDurationText(request: KubeObject, template: KubeObject | undefined): string {
  const { allowed, asked, isShortened } = durationOf(request, template);
  return isShortened && asked !== undefined ? `${allowed} of ${asked}` : (allowed ?? asked ?? 'default');
}

/** On a line: `30m, the default of the template`, or `9h, shortened to 2h`; empty if unknown. */
export function durationText(request: KubeObject, template: KubeObject | undefined): string {
  const text = firstDurationText(request, template);
  const isExtended = (statusOf(request).extensions ?? []).some(({ state }) => state === 'Granted');
  return isExtended && text !== '' ? `${text}, without extensions` : text;
}

function firstDurationText(request: KubeObject, template: KubeObject | undefined): string {
  const { allowed, asked, isShortened } = durationOf(request, template);
  if (asked !== undefined) return isShortened ? `${asked}, shortened to ${allowed}` : asked;
  if (allowed === undefined) return '';
  if (statusOf(request).grant) return allowed;
  return `${allowed}, ${isShortened ? 'the most that the template allows' : 'the default of the template'}`;
}
