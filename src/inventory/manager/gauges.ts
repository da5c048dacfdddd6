import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { LastOutcome } from '../core/run-record.ts';
import type { Entry } from '../entry.ts';
import type { InventoryStore, RunStore } from '../ports.ts';
import type { Breakers } from './breakers.ts';
import type { KeyMemory, Memories } from './memories.ts';
import { laneName, laneNames } from './metrics.ts';
import type { RegistrationLister } from './registrations.ts';

interface GaugesDeps {
  readonly entries: InventoryStore;
  /** Undefined while this replica does not lead; the gauges of keys are then 0 or absent. */
  readonly memories: () => Memories | undefined;
  readonly runs: Pick<RunStore, 'find'>;
  readonly registrations: RegistrationLister;
  readonly breakers: Breakers;
  readonly clock: Clock;
  /** `Store.ageMs` of the watch of entries. */
  readonly watchAgeMs: () => number;
}

type Collect = Parameters<Metrics['collected']>[1];

/** Registers the gauges that are computed at each scrape. */
export function registerInventoryGauges(metrics: Metrics, deps: GaugesDeps): void {
  const { entries, memories, runs, breakers, clock, watchAgeMs } = deps;
  const all = (): Iterable<KeyMemory> => memories()?.all() ?? [];
  const waits = (): readonly Wait[] => {
    const now = clock.monotonic();
    return [...all()].flatMap(({ dueAt = Number.POSITIVE_INFINITY, lane }) =>
      dueAt <= now ? [{ lane, ms: now - dueAt }] : [],
    );
  };
  const gauge = (name: string, help: string, labels: readonly string[], collect: Collect) =>
    metrics.collected({ name, help, labels }, collect);
  gauge('drawbridge_inventory_queue_depth', 'Due runs that have not started.', ['lane'], (set) => {
    const depths = laneNames.map(() => 0);
    for (const { lane } of waits()) depths[lane] = (depths[lane] ?? 0) + 1;
    for (const [lane, depth] of depths.entries()) set({ lane: laneName(lane) }, depth);
  });
  gauge('drawbridge_inventory_oldest_queued_seconds', 'The longest wait of a due run.', [], (set) =>
    set({}, waits().reduce((longest, { ms }) => Math.max(longest, ms), 0) / 1000),
  );
  gauge(
    'drawbridge_inventory_notready_entries',
    'Entries in which the component waits for an input longer than notReadyAlertAfterSeconds.',
    ['component', 'path'],
    (set) => {
      for (const { component, path, entries } of waitingEntries(all(), deps)) set({ component, path }, entries);
    },
  );
  gauge(
    'drawbridge_inventory_attempts',
    'spec.attempt of the ReconcileRuns, summed over all entries.',
    ['component'],
    (set) => {
      const attempts = new Map<string, number>();
      for (const { key } of all()) {
        attempts.set(key.component, (attempts.get(key.component) ?? 0) + (runs.find(key)?.record.attempt ?? 0));
      }
      for (const [component, count] of attempts) set({ component }, count);
    },
  );
  gauge(
    'drawbridge_inventory_breaker_state',
    'The circuit breaker: 0 closed, 1 half open, 2 open.',
    ['component'],
    (set) => {
      for (const { component, state } of breakers.states()) set({ component }, state);
    },
  );
  gauge(
    'drawbridge_inventory_watch_last_event_age_seconds',
    'Time since the API server last sent data to the watch of entries, or answered a check.',
    [],
    (set) => set({}, watchAgeMs() / 1000),
  );
  gauge('drawbridge_inventory_entry_bytes', 'Size of the largest entry. The limit is 65,536 bytes.', [], (set) =>
    set({}, largest(entries.list())),
  );
}

interface Wait {
  readonly lane: number;
  /** Milliseconds since it was due. */
  readonly ms: number;
}

function largest(entries: Iterable<Entry>): number {
  let most = 0;
  for (const { bytes } of entries) most = Math.max(most, bytes);
  return most;
}

/** For paths that no registration reads: a component may report any, and each costs memory. */
const otherPaths = 'other';

/** Entries that have waited long enough for an alert, by component and path. */
function waitingEntries(memories: Iterable<KeyMemory>, { entries, runs, registrations, clock }: GaugesDeps) {
  const readPaths = new Set<string>([...registrations.all()].flatMap(({ reads }) => reads));
  const counts = new Map<string, { component: string; path: string; entries: number }>();
  for (const { key } of memories) {
    const last = runs.find(key)?.record.lastOutcome;
    if (last?.outcome !== 'NotReady') continue;
    const alertAfterMs = registrations.get(key.component)?.notReadyAlertAfterMs ?? 0;
    const sinceMs = waitsSinceMs(entries.find(key.entryUid), key.component, last);
    if (sinceMs === undefined || clock.now() - sinceMs < alertAfterMs) continue;
    for (const label of new Set(last.missing.map(({ path }) => (readPaths.has(path) ? path : otherPaths)))) {
      const count = counts.get(`${key.component} ${label}`) ?? { component: key.component, path: label, entries: 0 };
      count.entries += 1;
      counts.set(`${key.component} ${label}`, count);
    }
  }
  return counts.values();
}

/** Epoch milliseconds; undefined if the status does not show that the component waits. */
function waitsSinceMs(entry: Entry | undefined, component: string, { sinceMs }: LastOutcome): number | undefined {
  const status = entry?.components.find(({ name }) => name === component);
  if (status?.state === 'Deleting') return parseTime(status.since);
  // A running component shows its run instead of NotReady.
  if (status?.reason === 'Running') return sinceMs;
  return status?.state === 'NotReady' ? Math.min(sinceMs, parseTime(status.since) ?? sinceMs) : undefined;
}
