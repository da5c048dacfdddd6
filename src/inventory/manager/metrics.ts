import type { Metrics } from '../../observe/metrics.ts';
import { lanes } from '../core/triggers.ts';

/** Seconds. */
const latencyBuckets = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** By number. */
export const laneNames = Object.keys(lanes);
export const laneName = (lane: number): string => laneNames[lane] ?? String(lane);

const reasonName = (reason: string): string => reason.split(':')[0] ?? '';

export function inventoryMetrics(metrics: Metrics) {
  const runs = metrics.counter({
    name: 'drawbridge_inventory_runs_total',
    help: 'Ended runs, including calls that a component did not accept.',
    labels: ['component', 'outcome', 'reason'],
  });
  const triggers = metrics.counter({
    name: 'drawbridge_inventory_triggers_total',
    help: 'Changes that may need a run, and forced runs. Several may start one run, or none.',
    labels: ['component', 'reason'],
  });
  const latency = metrics.histogram({
    name: 'drawbridge_inventory_trigger_latency_seconds',
    help: 'From the oldest change that a run handles until the call. Users wait in lane manual.',
    labels: ['lane'],
    buckets: latencyBuckets,
  });
  const duration = metrics.histogram({
    name: 'drawbridge_inventory_run_duration_seconds',
    help: 'From the start of a run until its outcome.',
    labels: ['component'],
    buckets: latencyBuckets,
  });
  const rejectedReports = metrics.counter({
    name: 'drawbridge_inventory_reports_rejected_total',
    help: 'Reports with the token of the current run that violate the contract: the component is faulty.',
    labels: ['component', 'code'],
  });
  const conflicts = metrics.counter({
    name: 'drawbridge_inventory_cas_conflicts_total',
    help: 'Writes of run records that lost to another writer. Many mean that two servers lead.',
  });
  const relists = metrics.counter({
    name: 'drawbridge_inventory_watch_relists_total',
    help: 'Full comparisons of all entries, at start and every half hour (periodic), and repeated lists of one kind, such as after its watch expired (gone).',
    labels: ['cause'],
  });
  return {
    triggered: (component: string, reason: string) => triggers.inc({ component, reason: reasonName(reason) }),
    dispatched: (lane: number, waitedMs: number) => latency.observe({ lane: laneName(lane) }, waitedMs / 1000),
    ended: (component: string, outcome: string, reason: string, durationMs: number) => {
      runs.inc({ component, outcome, reason: reasonName(reason) });
      duration.observe({ component }, durationMs / 1000);
    },
    reportRejected: (component: string, code: string) => rejectedReports.inc({ component, code }),
    conflict: () => conflicts.inc(),
    relisted: (cause: string) => relists.inc({ cause }),
  };
}

export type InventoryMetrics = ReturnType<typeof inventoryMetrics>;
