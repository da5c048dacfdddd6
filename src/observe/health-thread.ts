// Entry of the thread that answers probes, built as dist/health-thread.mjs. `health-server.ts` starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock as clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { type HealthReport, livenessAt, readinessAt } from './health.ts';
import type { ThreadData, ThreadStarted } from './health-server.ts';
import { startProbeServer } from './http.ts';

const { host, port, report } = workerData as ThreadData;
let last = { report, atMs: clock.monotonic() };
parentPort?.on('message', (next: HealthReport) => {
  last = { report: next, atMs: clock.monotonic() };
});
const ageMs = (): number => clock.monotonic() - last.atMs;
const started: ThreadStarted = await startProbeServer({
  host,
  port,
  readiness: () => readinessAt(ageMs(), last.report),
  liveness: () => livenessAt(ageMs()),
}).then(
  (server) => ({ port: server.port }),
  (error: unknown) => ({ problem: describe(error) }),
);
parentPort?.postMessage(started);
