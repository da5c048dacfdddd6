// Entry of the thread that answers probes, built as dist/health-thread.mjs. `health-server.ts` starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { threadsMonotonic } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { type HealthReport, livenessAt, readinessAt } from './health.ts';
import type { ThreadData, ThreadStarted } from './health-server.ts';
import { startProbeServer } from './http.ts';

const { host, port, report, aliveAtMs } = workerData as ThreadData;
let last = report;
parentPort?.on('message', (next: HealthReport) => {
  last = next;
});
const ageMs = (): number => threadsMonotonic() - (aliveAtMs[0] ?? 0);
const started: ThreadStarted = await startProbeServer({
  host,
  port,
  readiness: () => readinessAt(ageMs(), last),
  liveness: () => livenessAt(ageMs()),
}).then(
  (server) => ({ port: server.port }),
  (error: unknown) => ({ problem: describe(error) }),
);
parentPort?.postMessage(started);
