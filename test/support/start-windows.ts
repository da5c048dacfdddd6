import { type StartWindow, weekdays } from '../../src/api/access/access-config.ts';
import { formatTime } from '../../src/kit/clock.ts';

const dayMs = 86_400_000;

/** Start windows that are always open. */
export const alwaysOpen: readonly StartWindow[] = [
  { days: [...weekdays], from: '00:00', to: '24:00', timeZone: 'UTC' },
];

/** Start windows that are closed now, and when they next open: in two to three days. */
export function closedWindows(): { readonly windows: readonly StartWindow[]; readonly opensAt: string } {
  const opensMs = (Math.floor(Date.now() / dayMs) + 3) * dayMs;
  const day = weekdays[(new Date(opensMs).getUTCDay() + 6) % 7] ?? 'Mon';
  return { windows: [{ days: [day], from: '00:00', to: '18:00', timeZone: 'UTC' }], opensAt: formatTime(opensMs) };
}
