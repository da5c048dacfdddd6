// The thread that answers probes (dist/health-thread.mjs). `health-server.ts` starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock, threadsMonotonic } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { withDeadline } from '../kit/promises.ts';
import { type HealthReport, livenessAt, readinessAt } from './health.ts';
import type { ThreadData, ThreadStarted } from './health-server.ts';
import { startProbeServer } from './http.ts';

/** `/readyz` asks the main thread for a new report if the last one is older. */
const FRESH_MS = 400;
/** Then `/readyz` answers from the last report: by default, a kubelet waits 1 s. */
const REPORT_WAIT_MS = 600;

const { host, port, report, aliveAtMs } = workerData as ThreadData;
let last = report;
/** When `last` arrived, by `threadsMonotonic`. */
let lastAtMs = threadsMonotonic();
/** Set while the thread awaits a report. */
let awaited: PromiseWithResolvers<void> | undefined;
parentPort?.on('message', (next: HealthReport) => {
  last = next;
  lastAtMs = threadsMonotonic();
  awaited?.resolve();
  awaited = undefined;
});
/** The main thread sets `aliveAtMs` each second. */
const ageMs = (): number => threadsMonotonic() - (aliveAtMs[0] ?? 0);

async function readiness(): Promise<HealthReport> {
  if (threadsMonotonic() - lastAtMs > FRESH_MS) {
    if (!awaited) {
      awaited = Promise.withResolvers<void>();
      parentPort?.postMessage(undefined);
    }
    await withDeadline(systemClock, REPORT_WAIT_MS, awaited.promise).catch(() => undefined);
  }
  return readinessAt(ageMs(), last);
}

const started: ThreadStarted = await startProbeServer({
  host,
  port,
  readiness,
  liveness: () => livenessAt(ageMs()),
}).then(
  (server) => ({ port: server.port }),
  (error: unknown) => ({ problem: describe(error) }),
);
parentPort?.postMessage(started);
