import { formatTime } from '../kit/clock.ts';

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** The two largest units, rounded down, without zeros: `1h5m`, `42s`; a negative one is `0s`. */
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

/** `2026-11-21T09:30:00Z (in 12m)`, or `… (3m ago)`; epoch ms. */
export const timeFrom = (ms: number, nowMs: number): string =>
  `${formatTime(ms)} (${ms > nowMs ? `in ${span(ms - nowMs)}` : `${span(nowMs - ms)} ago`})`;
