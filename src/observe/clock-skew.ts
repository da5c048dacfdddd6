import type { Clock } from '../kit/clock.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { clockSkewMetric } from './process-metrics.ts';

/** Beyond this skew, users notice that grants end early or late. */
const TOLERATED_MS = 5000;
const WARN_AGAIN_MS = 5 * 60_000;

/**
 * Compares the clock of the process with the API server's, taken from the `Date` header of its answers. Sets a metric, and logs a
 * warning when they differ by more than 5 s, at most every 5 minutes. Grants end by the clock of the process either way.
 */
export function watchClockSkew({
  clock,
  log,
  metrics,
}: {
  clock: Clock;
  log: Log;
  metrics: Metrics;
}): (serverMs: number) => void {
  const gauge = clockSkewMetric(metrics);
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  return (serverMs) => {
    const skewMs = clock.now() - serverMs;
    gauge.set({}, Math.trunc(skewMs / 1000));
    if (Math.abs(skewMs) <= TOLERATED_MS || clock.monotonic() - warnedAtMs < WARN_AGAIN_MS) return;
    warnedAtMs = clock.monotonic();
    const seconds = Math.round(skewMs / 1000);
    log.warn(
      'the clock differs from the clock of the API server; grants end by this clock; check time synchronization',
      {
        skewSeconds: seconds,
      },
    );
  };
}
