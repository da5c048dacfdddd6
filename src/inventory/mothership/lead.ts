import { setMaxListeners } from 'node:events';
import { clusterInventories } from '../../api/inventory/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { Journal } from '../../audit/journal.ts';
import type { HintSource } from '../../engine/sources/hint.ts';
import { KeyBackoff } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { Log } from '../../observe/log.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { ComponentClient, InventoryStore, RemoteEvents, RunStore, TokenIssuer } from '../ports.ts';
import type { Breakers } from './breakers.ts';
import { Feed } from './feed.ts';
import { Loops } from './key-loop.ts';
import type { Limits } from './limits.ts';
import { Look } from './look.ts';
import type { MothershipMetrics } from './metrics.ts';
import { Outputs } from './outputs.ts';
import { Records } from './persist.ts';
import type { Registrations } from './registrations.ts';
import { Reports } from './reports.ts';
import { Teller } from './teller.ts';
import type { Work } from './work.ts';

/** What a lead is given; `MothershipDeps` adds what is needed besides. */
export interface LeadDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: Registrations;
  readonly components: ComponentClient;
  readonly tokens: TokenIssuer;
  readonly remote: RemoteEvents;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** The API server as components reach it. */
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
  /** Who abandonment is audited as. */
  readonly account: string;
}

/** What a replica has whether it leads or not. */
interface LastingParts {
  readonly limits: Limits;
  readonly breakers: Breakers;
  readonly newest: WriteThroughCache<Entry>;
  readonly metrics: MothershipMetrics;
  /** Keys that are to have their turn. */
  readonly queue: HintSource;
  /** Entries whose status may have changed. */
  readonly told: HintSource;
}

/** State that exists only while this replica is the leader. */
export interface Lead {
  readonly loops: Loops;
  readonly feed: Feed;
  readonly reports: Reports;
}

/** After the API server, or the issuing of tokens, failed. */
const startBackoff = { baseMs: 200, capMs: 30_000 };

/** Begins to lead; it ends when `signal` aborts. */
export function newLead(deps: LeadDeps, parts: LastingParts, signal: AbortSignal): Lead {
  const { entries, runs, registrations, tokens, clock, random, log, events, components, api, callbackUrl, remote } =
    deps;
  const { limits, breakers, newest, metrics, queue, told } = parts;
  const persist = { clock, random, log };
  const backoff = { ...startBackoff, random };
  // Every call and write waits for it.
  setMaxListeners(0, signal);
  const work: Work = {
    signal,
    clock,
    random,
    registry: registrations,
    look: new Look({ entries, runs, registry: registrations }),
    limits,
    runs,
    records: new Records(runs, persist),
    tokens,
    components,
    api,
    callbackUrl,
    outputs: new Outputs({ entries, runs, registry: registrations, newest, ...persist }),
    teller: new Teller({ onRow: (uid) => told.hint(uid), metrics, events, log }),
    failures: new KeyBackoff(backoff),
    uncalled: new KeyBackoff(backoff),
    refusals: new KeyBackoff(backoff),
    enqueue: (text, reason, lane, delayMs) => void queue.hint(text, reason, { lane, delayMs }),
    endpoint: (component, verdict, retryAfterMs) => breakers.tell(component, verdict, retryAfterMs),
    retired: (key, entry, may) => {
      told.hint(key.entryUid);
      if (may.may === 'no' && may.why === 'Abandoned') auditAbandonment(deps, key, entry);
    },
  };
  const loops = new Loops(work);
  return {
    loops,
    feed: new Feed({
      entries,
      runs,
      registry: registrations,
      registriesSynced: (stop) => registrations.whenSynced(stop),
      loops,
      metrics,
      remote,
      onRecordGone: (uid) => told.hint(uid),
      onLook: (uid) => told.hint(uid),
      clock,
      random,
    }),
    reports: new Reports(loops, { ...work, entries, log }),
  };
}

function auditAbandonment({ journal, log, account }: LeadDeps, { component }: ComponentKey, { ref }: Entry): void {
  log.warn('component abandoned', { entry: `${ref.namespace}/${ref.name}`, component });
  journal
    .append({
      event: 'revocation',
      verdict: 'revoked',
      who: { user: account },
      what: {
        operation: 'ABANDON',
        apiVersion: apiVersionOf(clusterInventories),
        kind: clusterInventories.kind,
        ...ref,
      },
      code: 'Abandoned',
      message: `nobody waits for component ${component} to tear down what it made`,
    })
    .catch((error: unknown) => log.error('abandonment not audited', { error: describe(error) }));
}
