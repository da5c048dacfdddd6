import type { Clock } from '../kit/clock.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { clockSkewMetric } from './process-metrics.ts';

/**
 * Tolerated skew, milliseconds. Beyond it, users notice that grants end early or late. A measured skew includes the latency of the call and the
 * fraction of a second that `Date` omits.
 */
const TOLERATED_MS = 5000;
const MIN_WARN_INTERVAL_MS = 5 * 60_000;

/**
 * Returns a function to call with the `Date` header of each answer of the API server (epoch ms, whole seconds). It sets the gauge
 * `drawbridge_clock_skew_seconds` to the clock of the process minus that of the API server, and logs a warning if they differ by more than
 * 5 s, at most every 5 minutes. Grants end by the clock of the process.
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
