import type { OutcomeName } from '../../api/inventory/reconcile-run.ts';
import { backoffMs, jittered } from '../../kit/backoff.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord } from './run-record.ts';
import type { RecentStart } from './step.ts';
import type { TriggerReason } from './triggers.ts';

/** Milliseconds between two starts of a key. */
const spacingMs = 200;
/** How much longer than its timeout a call may take, for the token, the wire and the answer. */
export const callSlackMs = 5000;
/**
 * How long after a restart a run that went on may at least still report. Meanwhile there was nobody to report to, and the clock of
 * whoever stored its lease may not have been ours.
 */
export const graceMs = 10_000;
/** Share of a lease by which the stored one may be shorter than the one that was granted: a component may report as often as it likes. */
export const unstoredShare = 0.1;
/** How far the clock of whoever stored an instant may be from ours. */
export const clockSlackMs = 300_000;
/** No token of a run lives longer. */
export const tokenLifetimeMs = 600_000;

const hourMs = 3_600_000;
/** A component that waits for an input is asked again by then, whatever its interval is. */
const maxNotReadyDelayMs = 600_000;
const maxRetryAfterMs = 300_000;

type Random = () => number;

/** Milliseconds, whole ones, until a key runs again by itself. */
export const nextDelayMs = (...of: Parameters<typeof exactDelayMs>): number => Math.round(exactDelayMs(...of));

function exactDelayMs(
  outcome: { readonly outcome: OutcomeName; readonly requeueAfterSeconds?: number },
  attempt: number,
  { intervalMs, retry }: Pick<Registration, 'intervalMs' | 'retry'>,
  random: Random,
): number {
  switch (outcome.outcome) {
    case 'Done':
    case 'Deleted':
      return jittered(intervalMs, 0.1, random);
    case 'NotReady':
      return jittered(Math.min(intervalMs, maxNotReadyDelayMs), 0.2, random);
    case 'Progressing':
      return Math.min(hourMs, Math.max(1000, (outcome.requeueAfterSeconds ?? 0) * 1000));
    case 'Retry':
      return backoffMs({ ...retry, attempt, random });
    case 'Failed':
      return jittered(hourMs, 0.2, random);
  }
}

/** The longest that what came of the last run can have made it wait: a stored time beyond that was written by another clock. */
export function maxDelayMs(
  { seq, attempt, lastOutcome }: Pick<RunRecord, 'seq' | 'attempt' | 'lastOutcome'>,
  registration: Pick<Registration, 'intervalMs' | 'retry'>,
): number {
  // It has not happened: it was not accepted, or could not be begun.
  if (lastOutcome?.seq !== seq) return maxRetryAfterMs;
  const { outcome } = lastOutcome;
  // The attempt counts already.
  const before = outcome === 'Retry' ? Math.max(0, attempt - 1) : 0;
  return nextDelayMs({ outcome, requeueAfterSeconds: hourMs / 1000 }, before, registration, () => 1);
}

/** Milliseconds until a run that was not accepted is tried again, the breaker apart. */
export const notAcceptedDelayMs = (retryAfterMs: number | undefined, random: Random): number =>
  Math.round(Math.max(Math.min(retryAfterMs ?? 0, maxRetryAfterMs), random() * 1000));

/** What a key is called that runs again by itself after this. */
export function wakeReason(outcome: OutcomeName | undefined): TriggerReason {
  if (outcome === 'Retry') return 'Retry';
  return outcome === 'Progressing' ? 'Requeue' : 'Interval';
}

const windowMs = 600_000;
/** So many starts with one and the same digest are no sign of anything. */
const allowedReturns = 5;
/** Enough for circles of ten. */
const maxRecentStarts = 64;

/** The starts to remember, after one with `digest`. Starts in a row with the same inputs do not count: nothing came back. */
export function withStart(recent: readonly RecentStart[], digest: string, at: number): readonly RecentStart[] {
  const kept = within(recent, at);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, at }].slice(-maxRecentStarts);
}

export const isLivelock = (recent: readonly RecentStart[], at: number): boolean =>
  mostReturns(recent, at).most > allowedReturns;

/**
 * Milliseconds between this key's starts: 200; in circles 1 s, and twice as many from each turn to the next, but never so many that
 * the circle could not be seen any more.
 */
export function spacingOf(recent: readonly RecentStart[], at: number): number {
  const { most, distinct } = mostReturns(recent, at);
  if (most <= allowedReturns) return spacingMs;
  return Math.round(Math.min(1000 * 2 ** (most - allowedReturns - 1), windowMs / (distinct * (allowedReturns + 2))));
}

/** How often the inputs were there that have come back most often, and how many different ones there were. */
function mostReturns(recent: readonly RecentStart[], at: number): { readonly most: number; readonly distinct: number } {
  if (recent.length <= allowedReturns) return { most: 0, distinct: 0 };
  const counts = new Map<string, number>();
  for (const { digest } of within(recent, at)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return { most: Math.max(0, ...counts.values()), distinct: counts.size };
}

const within = (recent: readonly RecentStart[], at: number): readonly RecentStart[] =>
  recent.filter((start) => start.at + windowMs >= at);
