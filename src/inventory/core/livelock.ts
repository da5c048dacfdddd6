import type { RecentStart } from './step.ts';
import { spacingMs } from './timing.ts';

const windowMs = 600_000;
/** So many starts with one and the same digest are no sign of anything. */
const allowed = 5;
/** Enough for circles of ten. */
const remembered = 64;

/** The starts to remember, after one with `digest`. Starts in a row with the same inputs do not count: nothing came back. */
export function withStart(recent: readonly RecentStart[], digest: string, at: number): readonly RecentStart[] {
  const kept = within(recent, at);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, at }].slice(-remembered);
}

export const isLivelock = (recent: readonly RecentStart[], at: number): boolean =>
  mostReturns(recent, at).most > allowed;

/**
 * Milliseconds between this key's starts: 200; in circles 1 s, and twice as many from each turn to the next, but never so many that
 * the circle could not be seen any more.
 */
export function spacingOf(recent: readonly RecentStart[], at: number): number {
  const { most, distinct } = mostReturns(recent, at);
  if (most <= allowed) return spacingMs;
  return Math.round(Math.min(1000 * 2 ** (most - allowed - 1), windowMs / (distinct * (allowed + 2))));
}

/** How often the inputs were there that have come back most often, and how many different ones there were. */
function mostReturns(recent: readonly RecentStart[], at: number): { readonly most: number; readonly distinct: number } {
  if (recent.length <= allowed) return { most: 0, distinct: 0 };
  const counts = new Map<string, number>();
  for (const { digest } of within(recent, at)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return { most: Math.max(0, ...counts.values()), distinct: counts.size };
}

const within = (recent: readonly RecentStart[], at: number): readonly RecentStart[] =>
  recent.filter((start) => start.at + windowMs >= at);
