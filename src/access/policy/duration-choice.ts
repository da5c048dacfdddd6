import type { AccessConfig } from '../../api/access/template-spec.ts';
import { quote } from '../../kit/errors.ts';
import { durationText, parseGoDuration, toMilliseconds } from '../../kit/go-duration.ts';
import type { Violation } from './policy.ts';

type DurationBounds = Pick<AccessConfig, 'defaultDuration' | 'maxDuration'> & {
  /** For the messages. Default false. */
  readonly isEmergencyMaximum?: boolean;
};

export interface ChosenDuration {
  /** Whole milliseconds, at least one second. */
  readonly grantedMs: number;
  /** For a condition. */
  readonly message: string;
  /** Shorter than requested. */
  readonly clamped: boolean;
}

const SECOND = 1_000_000_000n;
/** Timestamps have whole seconds. */
const MIN_NS = SECOND;
/** Ten years. Much longer ones would exceed activeDeadlineSeconds, an int32. */
const MAX_NS = 87_600n * 3600n * SECOND;
const REMEDY = 'write a Go duration from 1s up, for example 30m or 1h30m';

/**
 * As requested, else `defaultDuration` (1h); at most `maxDuration` (24h). Code `InvalidDuration`.
 */
export function chooseDuration(requestedText: string | undefined, config: DurationBounds): ChosenDuration | Violation {
  const bounds = readBounds(config);
  if ('code' in bounds) return bounds;
  const { defaultNs, maxNs } = bounds;
  const maximum = `the template's ${config.isEmergencyMaximum ? 'emergency maximum' : 'maximum'} of ${durationText(maxNs)}`;
  if (requestedText === undefined || requestedText === '') {
    if (defaultNs <= maxNs) return chosen(defaultNs, `the template's default of ${durationText(defaultNs)}`, false);
    // Emergencies have a lower maximum than the one that the CRD compares with the default.
    const message = `${maximum}, because its default of ${durationText(defaultNs)} is longer`;
    return chosen(maxNs, message, false);
  }
  const requested = readDuration(requestedText, 'spec.duration');
  if (typeof requested !== 'bigint') return requested;
  if (requested <= maxNs) return chosen(requested, `${durationText(requested)}, as requested`, false);
  const message = `requested ${durationText(requested)}, limited to ${maximum}`;
  return chosen(maxNs, message, true);
}

/** Code `InvalidDuration`. The condition TemplateDurationsValid shows the first. */
export function verifyDurations(config: DurationBounds): Violation[] {
  const [defaultNs, maxNs] = readDurations(config);
  if (typeof defaultNs !== 'bigint' || typeof maxNs !== 'bigint') {
    return [defaultNs, maxNs].filter((duration) => typeof duration !== 'bigint');
  }
  if (defaultNs <= maxNs) return [];
  return [
    {
      code: 'InvalidDuration',
      message:
        `defaultDuration ${durationText(defaultNs)} is longer than maxDuration ${durationText(maxNs)}; ` +
        'lower defaultDuration or raise maxDuration',
      field: 'spec.accessConfig.defaultDuration',
      status: 422,
    },
  ];
}

/** Milliseconds: `maxDuration` or, with `extended`, a longer `extension.total`. */
export function longestAccessMs(
  config: DurationBounds & Pick<AccessConfig, 'extension'>,
  extended: boolean,
): number | undefined {
  const bounds = readBounds(config);
  if ('code' in bounds) return undefined;
  const total =
    extended && config.extension
      ? readDuration(config.extension.total, 'spec.accessConfig.extension.total')
      : bounds.maxNs;
  if (typeof total !== 'bigint') return undefined;
  return toMilliseconds(total > bounds.maxNs ? total : bounds.maxNs);
}

function readBounds(config: DurationBounds): { readonly defaultNs: bigint; readonly maxNs: bigint } | Violation {
  const [defaultNs, maxNs] = readDurations(config);
  if (typeof defaultNs !== 'bigint') return defaultNs;
  return typeof maxNs === 'bigint' ? { defaultNs, maxNs } : maxNs;
}

const readDurations = (config: DurationBounds): [bigint | Violation, bigint | Violation] => [
  readDuration(config.defaultDuration ?? '1h', 'spec.accessConfig.defaultDuration'),
  readDuration(config.maxDuration ?? '24h', 'spec.accessConfig.maxDuration'),
];

/** Nanoseconds, at least 1 s. Code `InvalidDuration`. */
function readDuration(text: unknown, field: string): bigint | Violation {
  const refuse = (why: string): Violation => ({
    code: 'InvalidDuration',
    message: `${field} ${why}`,
    field,
    status: 422,
  });
  if (typeof text !== 'string') return refuse(`must be a string; ${REMEDY}`);
  const parsed = parseGoDuration(text);
  if ('error' in parsed) return refuse(parsed.error);
  if (parsed.ns <= 0n) return refuse(`must be above zero, not ${quote(text)}; ${REMEDY}`);
  if (parsed.ns < MIN_NS) return refuse(`must be at least 1s, not ${quote(text)}; ${REMEDY}`);
  // A request may have any duration, because the template's maximum caps it.
  if (field !== 'spec.duration' && parsed.ns > MAX_NS)
    return refuse(`must be at most 87600h (ten years), not ${quote(text)}; write a shorter duration`);
  return parsed.ns;
}

const chosen = (ns: bigint, message: string, clamped: boolean): ChosenDuration => ({
  grantedMs: toMilliseconds(ns),
  message,
  clamped,
});
