import type { Metrics } from '../../observe/metrics.ts';
import { lanes } from '../core/triggers.ts';

const latencyBuckets = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const laneNames = Object.keys(lanes);

/** What is looked up whenever somebody asks for the metrics. */
export interface Gauges {
  queueDepths(): ReadonlyMap<number, number>;
  oldestQueuedMs(): number;
  /** Waiting longer than their registration lets them before it is told. */
  notReady(): Iterable<{ readonly component: string; readonly path: string; readonly entries: number }>;
  attempts(): Iterable<{ readonly component: string; readonly attempts: number }>;
  /** 0 closed, 1 half open, 2 open. */
  breakers(): Iterable<{ readonly component: string; readonly state: number }>;
  watchAgeMs(): number;
  largestEntryBytes(): number;
}

/** What an operator watches of the mothership. */
export interface MothershipMetrics {
  /** Word before the colon of a reason. */
  triggered(component: string, reason: string): void;
  dispatched(lane: number, waitedMs: number): void;
  ended(component: string, outcome: string, reason: string, durationMs: number): void;
  conflict(): void;
  relisted(cause: string): void;
  observe(gauges: Gauges): void;
}

export function mothershipMetrics(metrics: Metrics): MothershipMetrics {
  const runs = metrics.counter({
    name: 'drawbridge_inventory_runs_total',
    help: 'Runs that have ended.',
    labels: ['component', 'outcome', 'reason'],
  });
  const triggers = metrics.counter({
    name: 'drawbridge_inventory_triggers_total',
    help: 'Reasons for runs; several of them may end in one run.',
    labels: ['component', 'reason'],
  });
  const latency = metrics.histogram({
    name: 'drawbridge_inventory_trigger_latency_seconds',
    help: 'From a change seen until the component is called.',
    labels: ['lane'],
    buckets: latencyBuckets,
  });
  const duration = metrics.histogram({
    name: 'drawbridge_inventory_run_duration_seconds',
    help: 'From the start of a run until its outcome.',
    labels: ['component'],
    buckets: latencyBuckets,
  });
  const conflicts = metrics.counter({
    name: 'drawbridge_inventory_cas_conflicts_total',
    help: 'Records that somebody else had written first.',
  });
  const relists = metrics.counter({
    name: 'drawbridge_inventory_watch_relists_total',
    help: 'Times that everything was compared anew.',
    labels: ['cause'],
  });
  return {
    triggered: (component, reason) => triggers.inc({ component, reason: word(reason) }),
    dispatched: (lane, waitedMs) => latency.observe({ lane: laneNames[lane] ?? String(lane) }, waitedMs / 1000),
    ended: (component, outcome, reason, durationMs) => {
      runs.inc({ component, outcome, reason: word(reason) });
      duration.observe({ component }, durationMs / 1000);
    },
    conflict: () => conflicts.inc(),
    relisted: (cause) => relists.inc({ cause }),
    observe: (gauges) => observed(metrics, gauges),
  };
}

const word = (reason: string): string => reason.split(':')[0] ?? '';

function observed(metrics: Metrics, gauges: Gauges): void {
  const gauge = (name: string, help: string, labels: readonly string[], collect: Parameters<Metrics['collected']>[1]) =>
    metrics.collected({ name, help, labels }, collect);
  gauge('drawbridge_inventory_queue_depth', 'Keys that wait for their turn.', ['lane'], (set) => {
    for (const [lane, depth] of gauges.queueDepths()) set({ lane: laneNames[lane] ?? String(lane) }, depth);
  });
  gauge('drawbridge_inventory_oldest_queued_seconds', 'How long the first of them has waited.', [], (set) =>
    set({}, gauges.oldestQueuedMs() / 1000),
  );
  gauge(
    'drawbridge_inventory_notready_entries',
    'Entries that have waited too long for an input.',
    ['component', 'path'],
    (set) => {
      for (const { component, path, entries } of gauges.notReady()) set({ component, path }, entries);
    },
  );
  gauge(
    'drawbridge_inventory_attempts',
    'Runs in a row that are to be retried, over all entries.',
    ['component'],
    (set) => {
      for (const { component, attempts } of gauges.attempts()) set({ component }, attempts);
    },
  );
  gauge(
    'drawbridge_inventory_breaker_state',
    'Of an endpoint: 0 closed, 1 half open, 2 open.',
    ['component'],
    (set) => {
      for (const { component, state } of gauges.breakers()) set({ component }, state);
    },
  );
  gauge(
    'drawbridge_inventory_watch_last_event_age_seconds',
    'How long ago the watch of the entries was heard of.',
    [],
    (set) => set({}, gauges.watchAgeMs() / 1000),
  );
  gauge('drawbridge_inventory_entry_bytes', 'The largest entry.', [], (set) => set({}, gauges.largestEntryBytes()));
}
