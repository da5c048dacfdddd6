import type { Metrics } from '../../observe/metrics.ts';

/** The returned function counts one lost recording. */
export function recordingMetrics(metrics: Metrics): () => void {
  const lost = metrics.counter({
    name: 'drawbridge_gateway_recordings_lost_total',
    help: 'Recordings that the gateway could not start or continue. Audit lines with the code RecordingLost give the cause.',
  });
  return () => lost.inc();
}
