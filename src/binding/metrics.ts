import type { Clock } from '../kit/clock.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Side } from './sync-engine/syncer.ts';

/** Labels are resources, bindings, sessions, and sides, never names of synced objects. */
export type BindingMetrics = ReturnType<typeof register>;

type HeartbeatAges = () => Iterable<{ readonly session: string; readonly ageMs: number }>;

const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const registered = new WeakMap<Metrics, BindingMetrics>();

export function bindingMetrics(metrics: Metrics): BindingMetrics {
  const ofRegistry = registered.get(metrics) ?? register(metrics);
  registered.set(metrics, ofRegistry);
  return ofRegistry;
}

function register(metrics: Metrics) {
  const latency = (name: string, help: string) =>
    metrics.histogram({ name, help, labels: ['resource'], buckets: latencyBuckets });
  const up = latency(
    'drawbridge_binding_sync_up_seconds',
    'From a change seen in the consumer until it is written to the provider.',
  );
  const down = latency(
    'drawbridge_binding_sync_down_seconds',
    'From a change seen in the provider until it is written to the consumer; of bound objects, only the status.',
  );
  const conflicts = metrics.counter({
    name: 'drawbridge_binding_conflicts_total',
    help: 'Writes that failed, and are retried, because the object changed meanwhile.',
    labels: ['resource', 'side'],
  });
  const repairs = metrics.counter({
    name: 'drawbridge_binding_repairs_total',
    help: 'Copies in the provider that the server restored after another client’s change or deletion.',
    labels: ['resource'],
  });
  const watchAge = readerGauge(
    metrics,
    'drawbridge_binding_watch_age_seconds',
    'Time since the API server of a watch last sent data or answered a check.',
    ['session', 'side', 'resource'],
    Math.max,
  );
  const heartbeats: HeartbeatAges[] = [];
  metrics.collected(
    {
      name: 'drawbridge_binding_heartbeat_age_seconds',
      help: 'Time since the last heartbeat was written to the provider.',
      labels: ['session'],
    },
    (set) => {
      for (const { session, ageMs } of heartbeats.flatMap((ages) => [...ages()])) set({ session }, ageMs / 1000);
    },
  );
  const objects = readerGauge(
    metrics,
    'drawbridge_binding_objects',
    'Objects in the consumer, and their copies in the provider.',
    ['binding', 'resource', 'side'],
    (a, b) => a + b,
  );
  return {
    /** `resource`: `<plural>.<group>` of a bound kind, `<plural>` of a claimed kind. */
    observer: (resource: string): SyncObserver => ({
      up: (seconds) => up.observe({ resource }, seconds),
      down: (seconds) => down.observe({ resource }, seconds),
      conflict: (side) => conflicts.inc({ resource, side }),
      repaired: () => repairs.inc({ resource }),
    }),
    /** Until the result is called; of equal labels, the highest age counts. */
    registerWatchAge: (labels: { session: string; side: Side; resource: string }, ageMs: () => number) =>
      watchAge(labels, () => ageMs() / 1000),
    registerHeartbeatAges: (ages: HeartbeatAges) => void heartbeats.push(ages),
    /** Objects that a binding syncs. Counts with equal labels add up; the result ends the export. */
    registerObjectCount: (labels: { binding: string; resource: string; side: Side }, count: () => number) =>
      objects(labels, count),
  };
}

type Register = (labels: Record<string, string>, read: () => number) => () => void;

/** The result adds readers to the gauge. `combine` merges readers with equal labels. */
function readerGauge(
  metrics: Metrics,
  name: string,
  help: string,
  labels: readonly string[],
  combine: (a: number, b: number) => number,
): Register {
  const readers = new Set<{ readonly labels: Record<string, string>; readonly read: () => number }>();
  metrics.collected({ name, help, labels }, (set) => {
    const series = new Map<string, { readonly labels: Record<string, string>; value: number }>();
    for (const { labels: labelValues, read } of readers) {
      const value = read();
      const ordered = Object.fromEntries(labels.map((label) => [label, labelValues[label] ?? '']));
      const key = JSON.stringify(ordered);
      const before = series.get(key);
      series.set(key, { labels: ordered, value: before === undefined ? value : combine(before.value, value) });
    }
    for (const { labels, value } of series.values()) set(labels, value);
  });
  return (labelValues, read) => {
    const reader = { labels: labelValues, read };
    readers.add(reader);
    return () => void readers.delete(reader);
  };
}

/** What the syncers of one kind observe. Its methods must not throw. */
export interface SyncObserver {
  /** `seconds` from the watch event in the consumer to the write in the provider. */
  up(seconds: number): void;
  /** Of a bound object's copy, only changes of the status count. */
  down(seconds: number): void;
  /** A write failed and is retried, because its object has changed meanwhile (409, 422, 404). */
  conflict(side: Side): void;
  /** A copy was written again after a change or deletion in the provider. */
  repaired(): void;
}

/** Measures the time from the first event of a key to the next write. */
export class Latency {
  readonly #clock: Clock;
  readonly #startedAtMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(key: string): void {
    if (!this.#startedAtMs.has(key)) this.#startedAtMs.set(key, this.#clock.monotonic());
  }

  /** In seconds, if one is running. */
  stop(key: string): number | undefined {
    const startedAtMs = this.#startedAtMs.get(key);
    this.#startedAtMs.delete(key);
    return startedAtMs === undefined ? undefined : (this.#clock.monotonic() - startedAtMs) / 1000;
  }

  clear(): void {
    this.#startedAtMs.clear();
  }
}
