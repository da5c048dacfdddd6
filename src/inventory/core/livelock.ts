import type { RecentStart } from './step.ts';
import { spacingMs } from './timing.ts';

const windowMs = 600_000;
/** So many starts with one and the same digest are no sign of anything. */
const allowed = 5;
/** Enough for circles of ten. */
const remembered = 64;
const longestMs = 300_000;

/** The starts to remember, after one with `digest`. Starts in a row with the same inputs do not count: nothing came back. */
export function withStart(recent: readonly RecentStart[], digest: string, at: number): readonly RecentStart[] {
  const kept = within(recent, at);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, at }].slice(-remembered);
}

/** How often inputs have come back that were there before: above `allowed` they go round in circles. */
function returns(recent: readonly RecentStart[], at: number): number {
  const counts = new Map<string, number>();
  for (const { digest } of within(recent, at)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return Math.max(0, ...counts.values());
}

export const isLivelock = (recent: readonly RecentStart[], at: number): boolean => returns(recent, at) > allowed;

/** Milliseconds between this key's starts: 200, and in circles twice as many from each turn to the next, up to 5 minutes. */
export function spacingOf(recent: readonly RecentStart[], at: number): number {
  const over = returns(recent, at) - allowed;
  return over > 0 ? Math.min(longestMs, 1000 * 2 ** (over - 1)) : spacingMs;
}

const within = (recent: readonly RecentStart[], at: number): readonly RecentStart[] =>
  recent.length > 0 && (recent[0]?.at ?? 0) + windowMs < at
    ? recent.filter((start) => start.at + windowMs >= at)
    : recent;
