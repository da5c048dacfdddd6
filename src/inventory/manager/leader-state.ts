import { setMaxListeners } from 'node:events';
import type { Journal } from '../../audit/journal.ts';
import type { HintSource } from '../../engine/sources/hint.ts';
import { KeyBackoff } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { Log } from '../../observe/log.ts';
import type { Entry } from '../entry.ts';
import type { ComponentClient, EntryAccess, InventoryStore, RemoteWatcher, RunStore, TokenIssuer } from '../ports.ts';
import type { AbandonmentReporter } from './abandonments.ts';
import type { Breakers } from './breakers.ts';
import { SnapshotReader } from './entry-snapshot.ts';
import { KeyEventSource } from './key-event-source.ts';
import { KeyLoops } from './key-loop.ts';
import type { KeyLoopDeps } from './key-loop-deps.ts';
import type { Limits } from './limits.ts';
import type { InventoryMetrics } from './metrics.ts';
import { OutputWriter } from './output-writer.ts';
import type { Registrations } from './registrations.ts';
import { ReportHandler } from './report-handler.ts';
import { RunReporter } from './run-reporter.ts';

export interface LeaderDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: Registrations;
  readonly components: ComponentClient;
  readonly tokens: TokenIssuer;
  readonly access: EntryAccess;
  readonly remote: RemoteWatcher;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** For components. `ca` in PEM; without it, they use the public CAs. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a trailing slash. */
  readonly callbackUrl: string;
  /** Named by the journal if the user who abandoned a component is unknown. */
  readonly account: string;
}

/** Parts of the manager that outlive leadership. */
interface ReplicaParts {
  readonly limits: Limits;
  readonly breakers: Breakers;
  readonly abandonments: AbandonmentReporter;
  readonly latestEntries: WriteThroughCache<Entry>;
  readonly metrics: InventoryMetrics;
  readonly queue: HintSource;
  /** Enqueues entries whose status may have changed. */
  readonly statusHints: HintSource;
}

export interface LeaderState {
  readonly loops: KeyLoops;
  readonly eventSource: KeyEventSource;
  readonly reports: ReportHandler;
}

/** After a failed start, call, or write. */
const keyBackoff = { baseMs: 200, capMs: 30_000 };

/** Its loops start no write after `signal` aborts. */
export function startLeading(deps: LeaderDeps, parts: ReplicaParts, signal: AbortSignal): LeaderState {
  const { entries, runs, registrations, tokens, access, clock, random, log, events, components } = deps;
  const { api, callbackUrl, remote } = deps;
  const { limits, breakers, abandonments, latestEntries, metrics, queue, statusHints } = parts;
  const retryDeps = { clock, random, log };
  const backoff = { ...keyBackoff, random };
  // Every call and write adds a listener; Node.js would warn about more than ten.
  setMaxListeners(0, signal);
  const loopDeps: KeyLoopDeps = {
    signal,
    ...retryDeps,
    registrations,
    snapshots: new SnapshotReader({ entries, runs, registrations }),
    limits,
    runs,
    tokens,
    components,
    api,
    callbackUrl,
    outputWriter: new OutputWriter({ entries, runs, access, registrations, latestEntries, ...retryDeps }),
    reporter: new RunReporter({ onStatusChange: (uid) => statusHints.hint(uid), metrics, events, log }),
    failures: new KeyBackoff(backoff),
    uncalled: new KeyBackoff(backoff),
    rejections: new KeyBackoff(backoff),
    enqueue: (keyText, reason, lane, delayMs) => void queue.hint(keyText, reason, { lane, delayMs }),
    recordCallResult: (component, verdict, retryAfterMs, problem) =>
      breakers.record(component, verdict, retryAfterMs, problem),
    probeDelayMs: (component, retryAfterMs) => breakers.probeDelayMs(component, retryAfterMs),
    retired: (key, entry, { abandoned }) => {
      statusHints.hint(key.entryUid);
      if (abandoned) abandonments.report(entry, key.component);
    },
  };
  const loops = new KeyLoops(loopDeps);
  return {
    loops,
    eventSource: new KeyEventSource({
      entries,
      runs,
      registrations,
      registrationsSynced: (syncSignal) => registrations.whenSynced(syncSignal),
      loops,
      metrics,
      remote,
      onRecordGone: (uid) => statusHints.hint(uid),
      onResync: (uid) => statusHints.hint(uid),
      clock,
      random,
    }),
    reports: new ReportHandler(loops, { ...loopDeps, entries }),
  };
}
