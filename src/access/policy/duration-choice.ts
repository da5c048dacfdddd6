import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { formatGoDuration, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { Violation } from './policy.ts';

type DurationBounds = Pick<AccessConfig, 'defaultDuration' | 'maxDuration'>;

interface ChosenDuration {
  /** Whole milliseconds, at least one second. */
  readonly grantedMs: number;
  /** Why this duration was chosen, for the condition. */
  readonly message: string;
  /** Whether it is shorter than requested. */
  readonly clamped: boolean;
}

const SECOND = 1_000_000_000n;
/** Timestamps have whole seconds. */
const SHORTEST = SECOND;
/** Ten years: longer deadlines exceed the range of timestamps and of activeDeadlineSeconds. */
const LONGEST = 87_600n * 3600n * SECOND;
const EXAMPLES = 'write a Go duration from 1s up, for example 30m or 1h30m';

/**
 * The granted duration: the template's default if the request names none, else the requested duration. Both are capped by the template's
 * maximum.
 */
export function chooseDuration(asked: string | undefined, config: DurationBounds): ChosenDuration | Violation {
  const bounds = readBounds(config);
  if ('code' in bounds) return bounds;
  const { standard, max } = bounds;
  if (asked === undefined || asked === '') {
    const granted = standard < max ? standard : max;
    return chosen(granted, `the template's default of ${formatGoDuration(granted)}`, false);
  }
  const wanted = readDuration(asked, 'spec.duration');
  if (typeof wanted !== 'bigint') return wanted;
  if (wanted <= max) return chosen(wanted, `${formatGoDuration(wanted)}, as requested`, false);
  const message = `requested ${formatGoDuration(wanted)}, granted the template's maximum of ${formatGoDuration(max)}`;
  return chosen(max, message, true);
}

/** Why a template's durations cannot be used; undefined if they can. The condition TemplateDurationsValid shows it. */
export function verifyDurations(config: DurationBounds): Violation | undefined {
  const bounds = readBounds(config);
  if ('code' in bounds) return bounds;
  if (bounds.standard <= bounds.max) return undefined;
  return {
    code: 'InvalidDuration',
    message:
      `defaultDuration ${formatGoDuration(bounds.standard)} is longer than maxDuration ${formatGoDuration(bounds.max)}; ` +
      'lower the one or raise the other',
    field: 'spec.accessConfig.defaultDuration',
    status: 422,
  };
}

/** The template's maxDuration, milliseconds; undefined if it cannot be parsed. */
export function maxDurationMs(config: DurationBounds): number | undefined {
  const bounds = readBounds(config);
  return 'code' in bounds ? undefined : toMilliseconds(bounds.max);
}

function readBounds(config: DurationBounds): { readonly standard: bigint; readonly max: bigint } | Violation {
  const standard = readDuration(config.defaultDuration ?? '1h', 'spec.accessConfig.defaultDuration');
  if (typeof standard !== 'bigint') return standard;
  const max = readDuration(config.maxDuration ?? '24h', 'spec.accessConfig.maxDuration');
  return typeof max === 'bigint' ? { standard, max } : max;
}

function readDuration(text: unknown, field: string): bigint | Violation {
  const refuse = (why: string): Violation => ({
    code: 'InvalidDuration',
    message: `${field} ${why}`,
    field,
    status: 422,
  });
  if (typeof text !== 'string') return refuse(`must be a string; ${EXAMPLES}`);
  const parsed = parseGoDuration(text);
  if ('error' in parsed) return refuse(parsed.error);
  if (parsed.ns <= 0n) return refuse(`must be above zero, not ${quote(text)}; ${EXAMPLES}`);
  if (parsed.ns < SHORTEST) return refuse(`must be at least 1s, not ${quote(text)}; ${EXAMPLES}`);
  // A request may ask for any duration, because the template's maximum caps it; the maximum itself is bounded.
  if (field !== 'spec.duration' && parsed.ns > LONGEST)
    return refuse(`must be at most 87600h (ten years), not ${quote(text)}`);
  return parsed.ns;
}

const chosen = (ns: bigint, message: string, clamped: boolean): ChosenDuration => ({
  grantedMs: toMilliseconds(ns),
  message,
  clamped,
});
