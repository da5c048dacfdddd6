import { setMaxListeners } from 'node:events';
import { clusterInventories } from '../../api/inventory/names.ts';
import { apiVersionOf } from '../../api/object.ts';
import type { Journal } from '../../audit/journal.ts';
import { Controller } from '../../engine/controller.ts';
import type { Runnable } from '../../engine/member.ts';
import { done } from '../../engine/result.ts';
import { fromSubscription, type Subscribable } from '../../engine/sources/from-subscription.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { aborted } from '../../kit/promises.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { Log } from '../../observe/log.ts';
import type { Metrics } from '../../observe/metrics.ts';
import { allHold, digestInputs } from '../core/digest.ts';
import type { Inputs } from '../core/step.ts';
import { step } from '../core/steps/step.ts';
import { lanes } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type {
  ComponentClient,
  EntryAccess,
  EntryChange,
  FenceProof,
  InventoryStore,
  RemoteEvents,
  ReportSink,
  RunStore,
  TokenIssuer,
} from '../ports.ts';
import { Breakers } from './breakers.ts';
import { Calls } from './calls.ts';
import { EntryReconciler } from './entry-reconciler.ts';
import { EntryStatus } from './entry-status.ts';
import { Feed } from './feed.ts';
import { mothershipGauges } from './gauges.ts';
import { KeyBackoff } from './key-backoff.ts';
import { Limits } from './limits.ts';
import { Look } from './look.ts';
import { Loops } from './loops.ts';
import { mothershipMetrics } from './metrics.ts';
import { NewestEntries } from './newest-entries.ts';
import { Outputs } from './outputs.ts';
import { Records } from './records.ts';
import { RegistrationReconciler } from './registration-reconciler.ts';
import type { RegistrationChange, Registrations } from './registrations.ts';
import { Reports } from './reports.ts';
import { Teller } from './teller.ts';
import { Unwatched } from './unwatched.ts';
import type { Work } from './work.ts';

export interface MothershipDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: Registrations;
  readonly components: ComponentClient;
  readonly tokens: TokenIssuer;
  readonly access: EntryAccess;
  readonly fence: FenceProof;
  readonly remote: RemoteEvents;
  readonly client: Client;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly api: { readonly url: string; readonly ca: string | undefined };
  /** Without a slash at the end. */
  readonly callbackUrl: string;
  /** Who abandonment is audited as. */
  readonly account: string;
  /** Milliseconds since the entries were last heard of. */
  readonly watchAgeMs: () => number;
}

/** What there is while this process leads. */
interface Lead {
  readonly loops: Loops;
  readonly feed: Feed;
  readonly reports: Reports;
}

const workers = 256;
/** Kept free for what somebody waits for. */
const reserved = 64;
const entryWorkers = 32;
/** A changed registration reaches its keys within five minutes, or sooner when they are few. */
const spread = { mostMs: 300_000, eachMs: 30 };
/** After the API server, or the issuing of tokens, failed. */
const startBackoff = { baseMs: 200, capMs: 30_000 };

/** Runs components when what they read changes, one run of each at a time, and says what has come of it. */
export class Mothership {
  readonly #deps: MothershipDeps;
  readonly #queue = hintSource('run');
  readonly #told = hintSource('told');
  readonly #reached = hintSource('reached');
  readonly #limits: Limits;
  readonly #breakers: Breakers;
  readonly #newest: NewestEntries;
  readonly #entryReconciler: EntryReconciler;
  readonly #metrics: ReturnType<typeof mothershipMetrics>;
  #lead: Lead | undefined;
  #runs: Controller | undefined;

  constructor(deps: MothershipDeps) {
    this.#deps = deps;
    const { entries, runs, registrations, clock, access, remote, fence } = deps;
    this.#newest = new NewestEntries((uid) => entries.find(uid) !== undefined);
    this.#metrics = mothershipMetrics(deps.metrics);
    this.#breakers = new Breakers({
      clock,
      onChange: (component, how) => this.#limits.componentChanged(component, how),
      onState: (component) => this.#reached.hint(component),
    });
    this.#limits = new Limits({
      registry: registrations,
      open: () => fence.proved,
      prepared: (uid) => this.#entryReconciler.isPrepared(uid),
      reachable: (component) => this.#breakers.admit(component),
      laneOf: (text) => this.#lead?.loops.get(text)?.lane,
      poke: (keys) => this.#runs?.poke(keys),
    });
    const loops = (): Loops | undefined => this.#lead?.loops;
    const status = new EntryStatus({
      registry: registrations,
      runs,
      loops,
      clock,
      remoteProblem: (uid) => (this.#entryReconciler.isWatching(uid) ? remote.problem(uid) : null),
    });
    this.#entryReconciler = new EntryReconciler({
      entries,
      runs,
      registry: registrations,
      access,
      remote,
      status,
      newest: this.#newest,
      unwatched: new Unwatched({
        loops,
        trigger: (key, trigger) => this.#lead?.feed.trigger(key, trigger),
        clock,
        random: deps.random,
      }),
      loops,
      clock,
      onPrepared: (uid) => this.#limits.entryChanged(uid),
    });
    this.#metrics.observe(
      mothershipGauges({ entries, loops, registrations, breakers: this.#breakers, clock, watchAgeMs: deps.watchAgeMs }),
    );
  }

  /** In the order in which they start; all behind one lease. */
  controllers(): Runnable[] {
    return [
      { name: 'inventory-fence', run: (signal, onSynced) => this.#prove(signal, onSynced) },
      { name: 'inventory-runs', run: (signal, onSynced) => this.#run(signal, onSynced) },
      this.#entries(),
      this.#registrations(),
    ];
  }

  /** Whether this replica takes reports. */
  get leads(): boolean {
    return this.#lead !== undefined;
  }

  /** A watch could not go on, so that everything was listed anew. */
  relisted(): void {
    this.#metrics.relisted('gone');
  }

  /** Answers that this replica does not lead, while it does not. */
  readonly reports: ReportSink = {
    report: async (run, credentialId, body) =>
      (await this.#lead?.reports.report(run, credentialId, body)) ?? {
        status: 503,
        code: 'NotLeading',
        message: 'another replica leads, or none does yet; report again',
      },
  };

  /** Does not keep anybody else waiting: until it is proved nothing is dispatched. */
  async #prove(signal: AbortSignal, onSynced: () => void): Promise<void> {
    onSynced();
    try {
      await this.#deps.fence.prove(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    this.#runs?.poke();
    await aborted(signal);
  }

  async #run(signal: AbortSignal, onSynced: () => void): Promise<void> {
    const { registrations, log, metrics, clock, random } = this.#deps;
    this.#limits.clear();
    this.#breakers.clear();
    const lead = this.#newLead(signal);
    const controller = new Controller({
      name: 'inventory-runs',
      sources: [this.#queue, lead.feed],
      reconciler: { reconcile: (text) => this.#turn(lead, text) },
      lanes: Object.keys(lanes).length,
      admit: (text) => this.#limits.admit(text),
      workers,
      reservedForUpperLanes: reserved,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-runs'),
    });
    this.#runs = controller;
    const stop = registrations.onChange((changes) => this.#registered(lead, changes, signal));
    try {
      await controller.run(signal, () => {
        // Before every key is known, an entry may look as if nobody had to do with it.
        this.#lead = lead;
        this.#tellAll();
        onSynced();
      });
    } finally {
      stop();
      this.#lead = undefined;
      this.#runs = undefined;
      this.#entryReconciler.clear();
    }
  }

  #newLead(signal: AbortSignal): Lead {
    const { entries, runs, registrations, tokens, clock, random, log, events, components, api, callbackUrl } =
      this.#deps;
    const persist = { clock, random, log };
    const backoff = { ...startBackoff, random };
    // Every call and write waits for it.
    setMaxListeners(0, signal);
    const work: Work = {
      signal,
      clock,
      random,
      step,
      registry: registrations,
      look: new Look({ entries, runs, registry: registrations, digestInputs, allHold }),
      limits: this.#limits,
      runs,
      records: new Records(runs, persist),
      tokens,
      calls: new Calls({ components, clock, api, callbackUrl }),
      outputs: new Outputs({ entries, runs, registry: registrations, newest: this.#newest, ...persist }),
      teller: new Teller({ onRow: (uid) => this.#told.hint(uid), metrics: this.#metrics, events, log }),
      failures: new KeyBackoff(backoff),
      uncalled: new KeyBackoff(backoff),
      refusals: new KeyBackoff(backoff),
      enqueue: (text, reason, lane, delayMs) => void this.#queue.hint(text, reason, { lane, delayMs }),
      endpoint: (component, verdict, retryAfterMs) => this.#breakers.tell(component, verdict, retryAfterMs),
      retired: (key, entry, may) => this.#retired(key, entry, may),
      isOlder: (a, b) => isOlder(a.resourceVersion, b.resourceVersion),
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
        metrics: this.#metrics,
        remote: this.#deps.remote,
        onRecordGone: (uid) => this.#told.hint(uid),
        onLook: (uid) => this.#told.hint(uid),
        clock,
        random,
      }),
      reports: new Reports(loops, { ...work, entries, log }),
    };
  }

  async #turn({ loops }: Lead, text: string) {
    const loop = loops.get(text);
    if (loop) await loop.turn();
    else this.#limits.release(text);
    return done;
  }

  #registered({ feed }: Lead, changes: readonly RegistrationChange[], signal: AbortSignal): void {
    const { random, log } = this.#deps;
    for (const { registration, endpoint } of changes) {
      if (endpoint) this.#breakers.forget(registration.name);
      const withinMs = (keys: number): number => Math.min(spread.mostMs, keys * spread.eachMs);
      feed.registrationChanged(registration, withinMs, random, signal).catch((error: unknown) => {
        if (!signal.aborted) log.error('not every key was told of its registration', { error: describe(error) });
      });
      this.#limits.componentChanged(registration.name, 'closed');
      this.#reached.hint(registration.name);
    }
    // Their statuses name it.
    this.#tellAll();
  }

  #tellAll(): void {
    for (const { ref } of this.#deps.entries.list()) this.#told.hint(ref.uid);
  }

  #retired({ entryUid, component }: ComponentKey, { ref }: Entry, may: Inputs['mayRun']): void {
    this.#told.hint(entryUid);
    const { journal, log, account } = this.#deps;
    if (may.may !== 'no' || may.why !== 'Abandoned') return;
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

  #entries(): Runnable {
    const { entries, remote, clock, random, log, metrics } = this.#deps;
    const uidOf = (change: EntryChange): string[] => [change.entry.ref.uid];
    return new Controller({
      name: 'inventory-entries',
      sources: [
        fromSubscription('entry', entries, uidOf),
        this.#told,
        fromSubscription<string>('remote-health', { subscribe: (told) => remote.onHealth(told) }, (uid) => [uid]),
      ],
      reconciler: this.#entryReconciler,
      workers: entryWorkers,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-entries'),
    });
  }

  #registrations(): Runnable {
    const { registrations, client, clock, random, log, metrics } = this.#deps;
    const all: Subscribable<string> = {
      subscribe: (listener) => {
        for (const { name } of registrations.all()) listener(name);
        // A change of one may concern what is said of any other.
        return registrations.onChange(() => {
          for (const { name } of registrations.all()) listener(name);
        });
      },
      whenSynced: (signal = new AbortController().signal) => registrations.whenSynced(signal),
    };
    return new Controller({
      name: 'inventory-registrations',
      sources: [fromSubscription('registration', all, (name) => [name]), this.#reached],
      reconciler: new RegistrationReconciler({ client, registrations, breakers: this.#breakers, clock }),
      workers: 4,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-registrations'),
    });
  }
}
