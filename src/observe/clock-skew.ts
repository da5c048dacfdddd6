import type { Clock } from '../kit/clock.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { clockSkewMetric } from './process-metrics.ts';

/** Beyond this, deadlines are noticeably early or late for people who look at their own clocks. */
const TOLERATED_MS = 5000;
const SAY_AGAIN_MS = 5 * 60_000;

/**
 * Compares our clock with the apiserver's, from the `Date` of its answers: a metric, and a warning when they are more than 5 s apart.
 * It changes nothing: deadlines are judged by our own clock.
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
  let saidAtMs = Number.NEGATIVE_INFINITY;
  return (serverMs) => {
    const skewMs = clock.now() - serverMs;
    gauge.set({}, Math.trunc(skewMs / 1000));
    if (Math.abs(skewMs) <= TOLERATED_MS || clock.monotonic() - saidAtMs < SAY_AGAIN_MS) return;
    saidAtMs = clock.monotonic();
    const seconds = Math.round(skewMs / 1000);
    log.warn("our clock and the API server's are apart: grants end by ours; check time synchronisation", {
      skewSeconds: seconds,
    });
  };
}
