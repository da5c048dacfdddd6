import { type Clock, parseTime } from '../../kit/clock.ts';
import type { Entry } from '../entry.ts';
import type { InventoryStore } from '../ports.ts';
import type { Breakers } from './breakers.ts';
import type { KeyLoop, Loops } from './key-loop.ts';
import type { Gauges } from './metrics.ts';
import type { Registry } from './registrations.ts';

interface GaugesDeps {
  readonly entries: InventoryStore;
  readonly loops: () => Loops | undefined;
  readonly registrations: Registry;
  readonly breakers: Breakers;
  readonly clock: Clock;
  readonly watchAgeMs: () => number;
}

/** Looked up in what there is; nothing is counted along the way. */
export function mothershipGauges(deps: GaugesDeps): Gauges {
  const { entries, loops, breakers, clock, watchAgeMs } = deps;
  const all = (): Iterable<KeyLoop> => loops()?.all() ?? [];
  const isQueued = ({ state }: KeyLoop): boolean =>
    state.phase === 'queued' && (state.pending?.dueAt ?? Number.POSITIVE_INFINITY) <= clock.monotonic();
  return {
    queueDepths() {
      const depths = new Map([0, 1, 2].map((lane) => [lane, 0]));
      for (const loop of all()) if (isQueued(loop)) depths.set(loop.lane, (depths.get(loop.lane) ?? 0) + 1);
      return depths;
    },
    oldestQueuedMs() {
      let oldest = 0;
      for (const loop of all()) {
        if (isQueued(loop)) oldest = Math.max(oldest, clock.monotonic() - (loop.state.pending?.dueAt ?? 0));
      }
      return oldest;
    },
    notReady: () => notReady(all(), deps),
    attempts() {
      const attempts = new Map<string, number>();
      for (const { key, state } of all()) {
        const count = state.stored?.record.attempt ?? 0;
        attempts.set(key.component, (attempts.get(key.component) ?? 0) + count);
      }
      return [...attempts].map(([component, count]) => ({ component, attempts: count }));
    },
    breakers: () => breakers.states(),
    watchAgeMs,
    largestEntryBytes: () => largest(entries.list()),
  };
}

function largest(entries: Iterable<Entry>): number {
  let most = 0;
  for (const { bytes } of entries) most = Math.max(most, bytes);
  return most;
}

/** Paths that no registration names are counted together: a component may name anything. */
const otherPaths = 'other';

function notReady(loops: Iterable<KeyLoop>, { entries, registrations, clock }: GaugesDeps) {
  const named = new Set<string>([...registrations.all()].flatMap(({ reads }) => reads));
  const counts = new Map<string, { component: string; path: string; entries: number }>();
  for (const { key, state } of loops) {
    const last = state.stored?.record.lastOutcome;
    if (last?.outcome !== 'NotReady') continue;
    const graceMs = registrations.get(key.component)?.notReadyAlertAfterMs ?? 0;
    const sinceMs = waitsSince(entries.find(key.entryUid), key.component);
    if (sinceMs === undefined || clock.now() - sinceMs < graceMs) continue;
    for (const { path } of last.missing) {
      const label = named.has(path) ? path : otherPaths;
      const count = counts.get(`${key.component} ${label}`) ?? { component: key.component, path: label, entries: 0 };
      count.entries += 1;
      counts.set(`${key.component} ${label}`, count);
    }
  }
  return counts.values();
}

/** Epoch milliseconds: of the status, which knows more than the last of many outcomes that were the same. */
function waitsSince(entry: Entry | undefined, component: string): number | undefined {
  const row = entry?.components.find(({ name }) => name === component);
  return row?.state === 'NotReady' || row?.state === 'Deleting' ? parseTime(row.since) : undefined;
}
