import type { OutcomeName } from '../../api/inventory/reconcile-run.ts';
import { backoffMs, jittered } from '../../kit/backoff.ts';
import type { Registration } from '../registration.ts';
import type { RunRecord } from './run-record.ts';
import type { RecentStart } from './step.ts';
import type { TriggerReason } from './triggers.ts';

/** Minimum time between two starts of a key, milliseconds. */
const spacingMs = 200;
/** Allowance on top of the timeout of a call, for the token, the network, and the answer. */
export const callSlackMs = 5000;
/**
 * Minimum time after a restart in which an asynchronous run may still report. Until then it had no leader to report to, and the clock that
 * stored its deadline may differ from ours.
 */
export const graceMs = 10_000;
/**
 * Share by which the stored deadline may be earlier than the granted one. A component may report as often as it likes without a write each
 * time.
 */
export const unstoredShare = 0.1;
/** Maximum assumed difference between our clock and that of the writer of an instant. */
export const clockSlackMs = 300_000;
/** Maximum lifetime of a run token. */
export const tokenLifetimeMs = 600_000;

const hourMs = 3_600_000;
/** Upper bound of the delay after NotReady, independent of the interval. */
const maxNotReadyDelayMs = 600_000;
const maxRetryAfterMs = 300_000;

type Random = () => number;

/** Whole milliseconds until the next run if nothing triggers one earlier. */
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

/** The longest delay that the last outcome allows. Another clock wrote any stored time beyond it. */
export function maxDelayMs(
  { seq, attempt, lastOutcome }: Pick<RunRecord, 'seq' | 'attempt' | 'lastOutcome'>,
  registration: Pick<Registration, 'intervalMs' | 'retry'>,
): number {
  // The run did not happen: the component did not accept it, or the start failed.
  if (lastOutcome?.seq !== seq) return maxRetryAfterMs;
  const { outcome } = lastOutcome;
  // `attempt` already includes the last outcome.
  const before = outcome === 'Retry' ? Math.max(0, attempt - 1) : 0;
  return nextDelayMs({ outcome, requeueAfterSeconds: hourMs / 1000 }, before, registration, () => 1);
}

/** Milliseconds until a run that was not accepted is retried; the circuit breaker may delay it further. */
export const notAcceptedDelayMs = (retryAfterMs: number | undefined, random: Random): number =>
  Math.round(Math.max(Math.min(retryAfterMs ?? 0, maxRetryAfterMs), random() * 1000));

/** Reason of the next run after this outcome. */
export function wakeReason(outcome: OutcomeName | undefined): TriggerReason {
  if (outcome === 'Retry') return 'Retry';
  return outcome === 'Progressing' ? 'Requeue' : 'Interval';
}

const windowMs = 600_000;
/** Number of starts with the same digest that is not yet a livelock. */
const allowedReturns = 5;
/** Enough to detect cycles of ten different inputs. */
const maxRecentStarts = 64;

/** The recent starts after one with `digest`. Consecutive starts with the same inputs count once, because nothing returned. */
export function withStart(recent: readonly RecentStart[], digest: string, at: number): readonly RecentStart[] {
  const kept = within(recent, at);
  return kept.at(-1)?.digest === digest ? kept : [...kept, { digest, at }].slice(-maxRecentStarts);
}

export const isLivelock = (recent: readonly RecentStart[], at: number): boolean =>
  mostReturns(recent, at).most > allowedReturns;

/**
 * Minimum milliseconds between starts of this key: 200. In a livelock 1 s, doubled with each return, but short enough that the livelock
 * stays detectable.
 */
export function spacingOf(recent: readonly RecentStart[], at: number): number {
  const { most, distinct } = mostReturns(recent, at);
  if (most <= allowedReturns) return spacingMs;
  return Math.round(Math.min(1000 * 2 ** (most - allowedReturns - 1), windowMs / (distinct * (allowedReturns + 2))));
}

/** Number of starts of the most frequent digest, and the number of distinct digests. */
function mostReturns(recent: readonly RecentStart[], at: number): { readonly most: number; readonly distinct: number } {
  if (recent.length <= allowedReturns) return { most: 0, distinct: 0 };
  const counts = new Map<string, number>();
  for (const { digest } of within(recent, at)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return { most: Math.max(0, ...counts.values()), distinct: counts.size };
}

const within = (recent: readonly RecentStart[], at: number): readonly RecentStart[] =>
  recent.filter((start) => start.at + windowMs >= at);
