import type { OutcomeName } from '../../api/inventory/reconcile-run.ts';
import { backoffMs, jittered } from '../../kit/backoff.ts';
import type { Registration } from '../registration.ts';
import type { RecentStart } from './key-state.ts';
import { type RunRecord, wasNotAccepted } from './run-record.ts';
import type { TriggerReason } from './triggers.ts';

/** Minimum time between two starts of a key, milliseconds. */
const spacingMs = 200;
/** Time that the deadline of a synchronous run adds to the timeout of its call, milliseconds. */
export const callSlackMs = 5000;
/**
 * Minimum time in which an adopted run may report, milliseconds. While the leader changed, the component could not report, and the clock
 * that set its deadline may differ from the clock of this process. A synchronous run of an earlier leader gets no such time.
 */
export const graceMs = 10_000;
/**
 * Fraction of the time that a heartbeat adds. A heartbeat that moves the deadline by less is not stored, so that frequent heartbeats cause
 * few writes, unless the run becomes asynchronous or its token changes.
 */
export const unstoredShare = 0.1;
/** Maximum assumed difference between the clock of this process and the clock that set an instant, milliseconds. */
export const clockSlackMs = 300_000;
/** Maximum lifetime of a run token, milliseconds. */
export const tokenLifetimeMs = 600_000;

const hourMs = 3_600_000;
/** Maximum delay after NotReady, before jitter, milliseconds. */
const maxNotReadyDelayMs = 600_000;
/** Maximum Retry-After that the server follows after a call that was not accepted or not made, milliseconds. */
const maxRetryAfterMs = 300_000;

type Random = () => number;

/** Whole milliseconds until the next run if no trigger starts one earlier. `attempt` counts the retries before this outcome. */
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
 * The longest delay that the last outcome allows, milliseconds. Callers limit the stored delay to it. A longer one was stored with a clock
 * that was ahead, or with a longer interval or backoff of the registration.
 */
export function maxDelayMs(
  { seq, attempt, lastOutcome }: Pick<RunRecord, 'seq' | 'attempt' | 'lastOutcome'>,
  registration: Pick<Registration, 'intervalMs' | 'retry'>,
): number {
  // The component did not accept the last call, or the server made no call after the last start.
  if (lastOutcome?.seq !== seq || wasNotAccepted(lastOutcome.reason)) return maxRetryAfterMs;
  const { outcome } = lastOutcome;
  // `attempt` already includes the last outcome.
  const attemptBefore = outcome === 'Retry' ? Math.max(0, attempt - 1) : 0;
  return nextDelayMs({ outcome, requeueAfterSeconds: hourMs / 1000 }, attemptBefore, registration, () => 1);
}

/**
 * Milliseconds until the server repeats a call that was not accepted or not made; the circuit breaker may delay it further.
 * `retryAfterMs`: minimum; undefined if the answer had no Retry-After.
 */
export const notAcceptedDelayMs = (retryAfterMs: number | undefined, random: Random): number =>
  Math.round(Math.max(Math.min(retryAfterMs ?? 0, maxRetryAfterMs), random() * 1000));

/** Reason of the next run after this outcome, if no trigger starts one earlier. `outcome` is undefined if no run has ended. */
export function wakeReason(outcome: OutcomeName | undefined): TriggerReason {
  if (outcome === 'Retry') return 'Retry';
  return outcome === 'Progressing' ? 'Requeue' : 'Interval';
}

/** Period in which starts count for a livelock, milliseconds. */
const windowMs = 600_000;
/** More starts than this with the same digest of the inputs, within `windowMs`, are a livelock. Consecutive starts count once. */
const allowedStarts = 5;
/** Maximum number of recent starts: enough to detect cycles of ten different inputs. */
const maxRecentStarts = 64;

/**
 * Adds a start with this digest of the inputs to the recent starts. Consecutive starts with the same digest count once. `monotonicMs` is the
 * current time, here and below.
 */
export function withStart(recent: readonly RecentStart[], digest: string, monotonicMs: number): readonly RecentStart[] {
  const kept = withinWindow(recent, monotonicMs);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, monotonicMs }].slice(-maxRecentStarts);
}

/**
 * Whether more than 5 runs in 10 minutes started with the same digest. Consecutive runs with the same digest, such as retries, count once.
 */
export const isLivelock = (recent: readonly RecentStart[], monotonicMs: number): boolean =>
  countStarts(recent, monotonicMs).most > allowedStarts;

/**
 * Minimum time between two starts of this key, milliseconds: 200. In a livelock it is 1 s and doubles with each start of the most frequent
 * digest. The spacing stays short enough that the livelock remains detectable.
 */
export function spacingOf(recent: readonly RecentStart[], monotonicMs: number): number {
  const { most, distinct } = countStarts(recent, monotonicMs);
  if (most <= allowedStarts) return spacingMs;
  return Math.round(Math.min(1000 * 2 ** (most - allowedStarts - 1), windowMs / (distinct * (allowedStarts + 2))));
}

/** Number of starts of the most frequent digest, and the number of distinct digests. Both are 0 for at most 5 starts. */
function countStarts(
  recent: readonly RecentStart[],
  monotonicMs: number,
): { readonly most: number; readonly distinct: number } {
  if (recent.length <= allowedStarts) return { most: 0, distinct: 0 };
  const counts = new Map<string, number>();
  for (const { digest } of withinWindow(recent, monotonicMs)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return { most: Math.max(0, ...counts.values()), distinct: counts.size };
}

/** The starts of the last 10 minutes. */
const withinWindow = (recent: readonly RecentStart[], monotonicMs: number): readonly RecentStart[] =>
  recent.filter((start) => start.monotonicMs + windowMs >= monotonicMs);
