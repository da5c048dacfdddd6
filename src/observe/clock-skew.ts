import type { Clock } from '../kit/clock.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { clockSkewMetric } from './process-metrics.ts';

/** Beyond this, users see grants end early or late. Includes the latency of the call. */
const TOLERATED_MS = 5000;
const MIN_WARN_INTERVAL_MS = 5 * 60_000;

/**
 * For the `Date` of each answer (epoch ms). Sets `drawbridge_clock_skew_seconds` and warns at most
 * every 5 minutes, because grants end by the clock of this process.
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
    if (Math.abs(skewMs) <= TOLERATED_MS || clock.monotonic() - warnedAtMs < MIN_WARN_INTERVAL_MS) return;
    warnedAtMs = clock.monotonic();
    // Rounded up, so that the log does not report a tolerated number.
    const seconds = Math.sign(skewMs) * Math.ceil(Math.abs(skewMs) / 1000);
    log.warn(
      `the clock of this process is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} that of the API server; at most 5 s are tolerated; ` +
        'grants end by the clock of this process; check the time synchronization of the nodes of this process and of the API server',
      { skewSeconds: seconds },
    );
  };
}
