import { formatTime } from '../kit/clock.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** A duration of `ms` milliseconds in its two largest units, without zeros: `1h5m`, `42s`. Rounded down; a negative one is `0s`. */
export function span(ms: number): string {
  const index = units.findIndex(([, unit]) => ms >= unit);
  if (index < 0) return '0s';
  let left = ms;
  return units
    .slice(index, index + 2)
    .map(([name, unit]) => {
      const count = Math.floor(left / unit);
      left -= count * unit;
      return count > 0 ? `${count}${name}` : '';
    })
    .join('');
}

/** A time with its distance from `nowMs`, both epoch ms: `2026-11-21T09:30:00Z (in 12m)`, or `… (3m ago)`. */
export const timeFrom = (ms: number, nowMs: number): string =>
  `${formatTime(ms)} (${ms > nowMs ? `in ${span(ms - nowMs)}` : `${span(nowMs - ms)} ago`})`;

/**
 * `ms` (milliseconds) as text if it is at least one second less than `asked`, a Go duration; otherwise, or if `asked` is invalid, undefined.
 * A smaller difference comes from rounding: access ends at a whole second.
 */
export function lessThanAsked(ms: number, asked: string): string | undefined {
  const parsed = parseGoDuration(asked);
  const askedMs = 'ns' in parsed ? toMilliseconds(parsed.ns) : 0;
  return ms > askedMs - 1000 ? undefined : span(ms);
}
