import type { Clock } from '../kit/clock.ts';
import type { Metrics } from '../observe/metrics.ts';

/** The cluster that a write or a watch is of. */
type Side = 'consumer' | 'provider';

/** What an operator watches of bindings. Resources, bindings and sessions are labels; names of synced objects never are. */
export interface BindingMetrics {
  /** A change seen in the consumer was written to the provider `seconds` later. `resource` is `<plural>.<group>`. */
  syncedUp(resource: string, seconds: number): void;
  /** A change seen in the provider was written to the consumer `seconds` later. */
  syncedDown(resource: string, seconds: number): void;
  /** A write to `side` was refused because the object had changed in between. */
  conflict(resource: string, side: Side): void;
  /** Shows how long ago a watch last heard from its server, milliseconds, until the returned function is called. */
  watching(labels: { session: string; side: Side; resource: string }, ageMs: () => number): () => void;
  /** Shows how long ago a session's heartbeat was last written, milliseconds; nothing while that is undefined. */
  heartbeat(labels: { session: string }, ageMs: () => number | undefined): () => void;
  /** Shows how many consumer objects a binding keeps in step. Counts of the same labels add up. */
  objects(labels: { binding: string; resource: string }, count: () => number): () => void;
}

const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const registered = new WeakMap<Metrics, BindingMetrics>();

/** The metrics of the binding half in `metrics`: the same ones each time, so that any part may ask for them. */
export function bindingMetrics(metrics: Metrics): BindingMetrics {
  const known = registered.get(metrics) ?? register(metrics);
  registered.set(metrics, known);
  return known;
}

function register(metrics: Metrics): BindingMetrics {
  const latency = (name: string, help: string) =>
    metrics.histogram({ name, help, labels: ['resource'], buckets: latencyBuckets });
  const up = latency(
    'drawbridge_binding_sync_up_seconds',
    'From a change seen in the consumer until it was written to the provider.',
  );
  const down = latency(
    'drawbridge_binding_sync_down_seconds',
    'From a change seen in the provider until it was written to the consumer.',
  );
  const conflicts = metrics.counter({
    name: 'drawbridge_binding_conflicts_total',
    help: 'Writes that were refused because the object had changed in between.',
    labels: ['resource', 'side'],
  });
  const watchAge = live(
    metrics,
    'drawbridge_binding_watch_age_seconds',
    'How long ago a watch last heard from its server.',
    ['session', 'side', 'resource'],
    Math.max,
  );
  const heartbeatAge = live(
    metrics,
    'drawbridge_binding_heartbeat_age_seconds',
    'How long ago the heartbeat of a session was last written.',
    ['session'],
    Math.max,
  );
  const objects = live(
    metrics,
    'drawbridge_binding_objects',
    'Consumer objects that a binding keeps in step with the provider.',
    ['binding', 'resource'],
    (a, b) => a + b,
  );
  const inSeconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);
  return {
    syncedUp: (resource, seconds) => up.observe({ resource }, seconds),
    syncedDown: (resource, seconds) => down.observe({ resource }, seconds),
    conflict: (resource, side) => conflicts.inc({ resource, side }),
    watching: (labels, ageMs) => watchAge(labels, () => inSeconds(ageMs())),
    heartbeat: (labels, ageMs) => heartbeatAge(labels, () => inSeconds(ageMs())),
    objects: (labels, count) => objects(labels, count),
  };
}

type Register = (labels: Record<string, string>, read: () => number | undefined) => () => void;

/** A gauge made of what registered itself and has not gone; `combine` makes one value of those with equal labels. */
function live(
  metrics: Metrics,
  name: string,
  help: string,
  labels: readonly string[],
  combine: (a: number, b: number) => number,
): Register {
  const readers = new Set<{ readonly labels: Record<string, string>; readonly read: () => number | undefined }>();
  metrics.collected({ name, help, labels }, (set) => {
    const series = new Map<string, { readonly labels: Record<string, string>; value: number }>();
    for (const { labels: own, read } of readers) {
      const value = read();
      if (value === undefined) continue;
      const key = JSON.stringify(labels.map((label) => own[label]));
      const before = series.get(key);
      series.set(key, { labels: own, value: before === undefined ? value : combine(before.value, value) });
    }
    for (const { labels: own, value } of series.values()) set(own, value);
  });
  return (own, read) => {
    const reader = { labels: own, read };
    readers.add(reader);
    return () => void readers.delete(reader);
  };
}

/** Measures from the first sight of a change until it was dealt with. One for each direction; keys are those of the queue. */
export class SyncWatch {
  readonly #since = new Map<string, number>();
  readonly #clock: Clock;
  readonly #observe: (seconds: number) => void;

  constructor(clock: Clock, observe: (seconds: number) => void) {
    this.#clock = clock;
    this.#observe = observe;
  }

  /** A change of `key` was seen; earlier ones that still wait count from when they were seen. */
  seen(key: string): void {
    if (!this.#since.has(key)) this.#since.set(key, this.#clock.monotonic());
  }

  /** What was seen of `key` has been written. */
  written(key: string): void {
    const since = this.#since.get(key);
    if (since !== undefined) this.#observe((this.#clock.monotonic() - since) / 1000);
    this.#since.delete(key);
  }

  /** There was nothing to write for `key`. */
  dropped(key: string): void {
    this.#since.delete(key);
  }
}
