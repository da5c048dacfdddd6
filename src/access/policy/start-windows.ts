import { type StartWindow, weekdays } from '../../api/access/access-config.ts';
import { utcMidnight } from '../../kit/clock.ts';
import { quote } from '../../kit/errors.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Violation } from './policy.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** A weekly window opens within these days, even if the clocks go forward and skip it once. */
const maxDaysAhead = 15;
/** Until a weekly window opens, unless the clocks skip it. */
export const longestBetweenWindowsMs = 8 * dayMs;

/** On the clocks of a time zone. */
interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  /** Index into `weekdays`. */
  readonly weekday: number;
  /** Since midnight. */
  readonly minutes: number;
}

/**
 * From `from` up to, not including, `to` on the local clock. A time that occurs twice counts twice.
 * When clocks go forward, a window that begins in the skipped hour begins at its end.
 */
export function isInWindow(windows: readonly StartWindow[], atMs: number): boolean {
  return windows.some((window) => {
    const { weekday, minutes } = localTime(window.timeZone, atMs);
    const [from, to] = [minutesOf(window.from), minutesOf(window.to)];
    const opensOn = (index: number): boolean => window.days.includes(weekdays[(index + 7) % 7] ?? 'Mon');
    if (from < to) return opensOn(weekday) && minutes >= from && minutes < to;
    return (opensOn(weekday) && minutes >= from) || (opensOn(weekday - 1) && minutes < to);
  });
}

/** The first instant in a window, epoch ms: `atMs` itself, or a whole minute. */
export function nextWindowStart(windows: readonly StartWindow[], atMs: number): number | undefined {
  if (isInWindow(windows, atMs)) return atMs;
  const openings = windows.flatMap((window) => openingsOf(window, atMs));
  return openings.length > 0 ? Math.min(...openings) : undefined;
}

export const windowsViolations = (windows: readonly StartWindow[]): Violation[] =>
  windows.flatMap(({ timeZone }, index) => (formatOf(timeZone) ? [] : [unknownZone(timeZone, index)]));

function unknownZone(timeZone: string, index: number): Violation {
  const field = `spec.accessConfig.start.windows[${index}].timeZone`;
  return {
    code: 'InvalidTemplate',
    message: `${field} is ${quote(timeZone)}, which is not a time zone; write an IANA name, such as Europe/Berlin`,
    field,
    status: 422,
    key: timeZone,
  };
}

/** The first after `atMs`, at most `maxDaysAhead` days later. */
function openingsOf(window: StartWindow, atMs: number): number[] {
  const from = minutesOf(window.from);
  const today = localTime(window.timeZone, atMs);
  for (let ahead = 0; ahead <= maxDaysAhead; ahead++) {
    const asUtc = utcMidnight(today.year, today.month, today.day + ahead) + from * minuteMs;
    // If the offset changes that day, the time may occur once, twice, or never: try each minute.
    const before = asUtc - offsetMs(window.timeZone, asUtc - dayMs);
    const after = asUtc - offsetMs(window.timeZone, asUtc + dayMs);
    for (let ms = Math.min(before, after); ms <= Math.max(before, after); ms += minuteMs) {
      if (ms > atMs && isInWindow([window], ms)) return [ms];
    }
  }
  return [];
}

/** Milliseconds, positive east of UTC. */
function offsetMs(timeZone: string, atMs: number): number {
  const { year, month, day, minutes } = localTime(timeZone, atMs);
  return utcMidnight(year, month, day) + minutes * minuteMs - Math.floor(atMs / minuteMs) * minuteMs;
}

/** UTC for an unknown zone, which `windowsViolations` reports. */
function localTime(timeZone: string, atMs: number): LocalTime {
  const format = formatOf(timeZone) ?? formatOf('UTC');
  const parts = new Map(format?.formatToParts(atMs).map(({ type, value }) => [type, value]));
  const number = (type: Intl.DateTimeFormatPartTypes): number => Number(parts.get(type));
  return {
    year: number('year'),
    month: number('month'),
    day: number('day'),
    weekday: weekdayNames.indexOf(parts.get('weekday') ?? ''),
    minutes: number('hour') * 60 + number('minute'),
  };
}

const weekdayNames: readonly string[] = weekdays;

/** `08:30` as minutes since midnight. */
function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}

/** By time zone: creating one takes 0.1 ms. Bounded, because templates may name any zone. */
const formats = new RecentMap<string, Intl.DateTimeFormat | undefined>(64);

/** Undefined if there is no such zone. */
function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  if (!formats.has(timeZone)) formats.set(timeZone, createFormat(timeZone));
  return formats.get(timeZone);
}

function createFormat(timeZone: string): Intl.DateTimeFormat | undefined {
  const fields = { year: 'numeric', month: 'numeric', day: 'numeric', weekday: 'short' } as const;
  try {
    return new Intl.DateTimeFormat('en-US', {
      ...fields,
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
      timeZone,
    });
  } catch {
    return undefined;
  }
}
