import type { OutcomeName } from '../../api/inventory/reconcile-run.ts';
import { backoffMs, jittered } from '../../kit/backoff.ts';
import type { Registration } from '../registration.ts';
import { type RunRecord, wasNotAccepted } from './run-record.ts';
import type { TriggerReason } from './triggers.ts';

/** Minimum milliseconds between two starts of a key. */
const spacingMs = 200;
/** The deadline of a synchronous run is this much later than the timeout of its call. */
export const callSlackMs = 5000;
/** An adopted run may report for this long: it could not while the leader changed. */
export const graceMs = 10_000;
/** A heartbeat that gains less than this share is not stored, so that frequent ones cost little. */
export const unstoredShare = 0.1;
/** Maximum assumed difference between this clock and the one that set an instant. */
export const clockSlackMs = 300_000;
export const tokenLifetimeMs = 600_000;

/** Between runs of a component that misses changes of what it watches, before jitter. */
export const unwatchedRunsMs = 300_000;

const hourMs = 3_600_000;
/** Before jitter. */
const maxNotReadyDelayMs = 600_000;
/** Maximum Retry-After that the server follows. */
const maxRetryAfterMs = 300_000;

type Random = () => number;

/** Whole milliseconds until the next run without a trigger. `attempt`: retries before. */
export const nextDelayMs = (...parameters: Parameters<typeof exactDelayMs>): number =>
  Math.round(exactDelayMs(...parameters));

function exactDelayMs(
  { outcome, requeueAfterSeconds = 0 }: { readonly outcome: OutcomeName; readonly requeueAfterSeconds?: number },
  attempt: number,
  { intervalMs, retry }: Pick<Registration, 'intervalMs' | 'retry'>,
  random: Random,
): number {
  switch (outcome) {
    case 'Done':
    case 'Deleted':
      return jittered(intervalMs, 0.1, random);
    case 'NotReady':
      return jittered(Math.min(intervalMs, maxNotReadyDelayMs), 0.2, random);
    case 'Progressing':
      return Math.min(hourMs, Math.max(1000, requeueAfterSeconds * 1000));
    case 'Retry':
      return backoffMs({ ...retry, attempt, random });
    case 'Failed':
      return jittered(hourMs, 0.2, random);
  }
}

/**
 * The longest delay that the last outcome allows. Callers cap stored delays: the clock of then may
 * have been ahead.
 */
export function maxDelayMs(
  { seq, attempt, lastOutcome }: Pick<RunRecord, 'seq' | 'attempt' | 'lastOutcome'>,
  registration: Pick<Registration, 'intervalMs' | 'retry'>,
): number {
  // The last call was not accepted, or not made.
  if (lastOutcome?.seq !== seq || wasNotAccepted(lastOutcome.reason)) return maxRetryAfterMs;
  const { outcome } = lastOutcome;
  const attemptBefore = outcome === 'Retry' ? Math.max(0, attempt - 1) : 0;
  return nextDelayMs({ outcome, requeueAfterSeconds: hourMs / 1000 }, attemptBefore, registration, () => 1);
}

/** Until a call that was not accepted or not made is repeated. `retryAfterMs`: the minimum. */
export const notAcceptedDelayMs = (retryAfterMs: number | undefined, random: Random): number =>
  Math.round(Math.max(Math.min(retryAfterMs ?? 0, maxRetryAfterMs), random() * 1000));

/** Reason of the next run if no trigger starts one earlier. */
export function wakeReason(outcome: OutcomeName | undefined): TriggerReason {
  if (outcome === 'Retry') return 'Retry';
  return outcome === 'Progressing' ? 'Requeue' : 'Interval';
}

export interface RecentStart {
  readonly digest: string;
  readonly monotonicMs: number;
}

const windowMs = 600_000;
/** More starts with one digest within `windowMs` are a livelock. Consecutive ones count once. */
const allowedStarts = 5;
/** Enough to detect cycles of ten different inputs. */
const maxRecentStarts = 64;

/** Adds a start. Consecutive starts with the same digest count as one. */
export function withStart(recent: readonly RecentStart[], digest: string, monotonicMs: number): readonly RecentStart[] {
  const kept = withinWindow(recent, monotonicMs);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, monotonicMs }].slice(-maxRecentStarts);
}

export const isLivelock = (recent: readonly RecentStart[], monotonicMs: number): boolean =>
  countStarts(recent, monotonicMs).most > allowedStarts;

/** Minimum milliseconds between starts. Doubles in a livelock, which must stay detectable. */
export function spacingOf(recent: readonly RecentStart[], monotonicMs: number): number {
  const { most, distinct } = countStarts(recent, monotonicMs);
  if (most <= allowedStarts) return spacingMs;
  return Math.round(Math.min(1000 * 2 ** (most - allowedStarts - 1), windowMs / (distinct * (allowedStarts + 2))));
}

/** Starts of the most frequent digest, and number of digests. Both 0 for at most 5 starts. */
function countStarts(
  recent: readonly RecentStart[],
  monotonicMs: number,
): { readonly most: number; readonly distinct: number } {
  if (recent.length <= allowedStarts) return { most: 0, distinct: 0 };
  const counts = new Map<string, number>();
  for (const { digest } of withinWindow(recent, monotonicMs)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return { most: Math.max(0, ...counts.values()), distinct: counts.size };
}

const withinWindow = (recent: readonly RecentStart[], monotonicMs: number): readonly RecentStart[] =>
  recent.filter((start) => start.monotonicMs + windowMs >= monotonicMs);
