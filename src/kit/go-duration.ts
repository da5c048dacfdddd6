import { quote } from './errors.ts';

const NS = 1n;
const US = 1000n * NS;
const MS = 1000n * US;
const SECOND = 1000n * MS;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;

/** Both micro signs: U+00B5, which Go prints, and U+03BC, the Greek letter. */
const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', NS],
  ['us', US],
  ['\u00b5s', US],
  ['\u03bcs', US],
  ['ms', MS],
  ['s', SECOND],
  ['m', MINUTE],
  ['h', HOUR],
]);

/** 2^63: the magnitude of Go's smallest duration, one more than that of the largest. */
const LIMIT = 1n << 63n;

const ALLOWED = 'allowed are numbers with a unit of ns, us, µs, ms, s, m, or h, for example "30m" or "1h30m"';

export type ParsedDuration = { readonly ns: bigint } | { readonly error: string };

/** Go has no such limit; it bounds the work. */
const MAX_LENGTH = 256;

/** Exactly as Go's time.ParseDuration, but at most 256 characters. */
export function parseGoDuration(text: string): ParsedDuration {
  if (text.length > MAX_LENGTH) return { error: `${quote(text)} is longer than ${MAX_LENGTH} characters; ${ALLOWED}` };
  const unsigned = /^[-+]/.test(text) ? text.slice(1) : text;
  if (unsigned === '0') return { ns: 0n };
  if (unsigned === '') return { error: `${quote(text)} is not a duration; ${ALLOWED}` };

  let total = 0n;
  const part = /([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)/y;
  while (part.lastIndex < unsigned.length) {
    const [, whole = '', , fraction = '', unitName = ''] = part.exec(unsigned) ?? [];
    if (whole === '' && fraction === '') return { error: `${quote(text)} is not a duration; ${ALLOWED}` };
    if (unitName === '') return { error: `${quote(text)} has a number without a unit; ${ALLOWED}` };
    const unit = UNITS.get(unitName);
    if (unit === undefined) return { error: `${quote(text)} has the unknown unit ${quote(unitName)}; ${ALLOWED}` };
    total += wholeNs(whole, unit) + fractionNs(fraction, unit);
    if (total > LIMIT) return outOfRange(text);
  }
  if (text.startsWith('-')) return { ns: -total };
  return total === LIMIT ? outOfRange(text) : { ns: total };
}

function outOfRange(text: string): ParsedDuration {
  return { error: `${quote(text)} is out of range; a duration is at most about 292 years (2562047h47m16.854775807s)` };
}

/** Above LIMIT for a number with more digits than 2^63, without parsing it. */
function wholeNs(digits: string, unit: bigint): bigint {
  const significant = digits.replace(/^0+/, '');
  return significant.length > 19 ? LIMIT + 1n : BigInt(significant) * unit;
}

/** As Go: through float64, with only the digits that fit into an int64. */
function fractionNs(digits: string, unit: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    if (value > (LIMIT - 1n) / 10n) break;
    const next = value * 10n + BigInt(digit);
    if (next > LIMIT) break;
    value = next;
    scale *= 10;
  }
  return value === 0n ? 0n : BigInt(Math.trunc(Number(value) * (Number(unit) / scale)));
}

/** Rounded toward zero, so that a positive duration never becomes longer. */
export function toMilliseconds(ns: bigint): number {
  return Number(ns / MS);
}

const DAY = 24n * HOUR;

/** For people: `4 h`, `1 h 30 min`, `45 s`, `250 ms`; two or more whole days as `7 days`. */
export function durationText(ns: bigint): string {
  if (ns < 0n) return `-${durationText(-ns)}`;
  if (ns < SECOND) return ns < MS ? '0 s' : `${ns / MS} ms`;
  if (ns >= 2n * DAY && ns % DAY === 0n) return `${ns / DAY} days`;
  const milliseconds = ((ns % SECOND) / MS).toString().padStart(3, '0').replace(/0+$/, '');
  const seconds = `${(ns % MINUTE) / SECOND}${milliseconds === '' ? '' : `.${milliseconds}`}`;
  const parts: readonly (readonly [string, string])[] = [
    [`${ns / HOUR}`, 'h'],
    [`${(ns % HOUR) / MINUTE}`, 'min'],
    [seconds, 's'],
  ];
  return parts
    .filter(([value]) => value !== '0')
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ');
}
