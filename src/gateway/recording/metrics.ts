import type { Metrics } from '../../observe/metrics.ts';

/** Registers the metric of recordings. The returned function counts a session that is not, or no longer, recorded. */
export function recordingMetrics(metrics: Metrics): () => void {
  const lost = metrics.counter({
    name: 'drawbridge_gateway_recordings_lost_total',
    help: 'Sessions that should be recorded, and are not, or no longer. The audit lines with the code RecordingLost say why. Alert if it grows.',
  });
  return () => lost.inc();
}
