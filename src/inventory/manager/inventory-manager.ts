import { setMaxListeners } from 'node:events';
import type { Journal } from '../../audit/journal.ts';
import { Controller } from '../../engine/controller.ts';
import { fromSubscription, type Subscribable } from '../../engine/sources/from-subscription.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Runnable } from '../../engine/supervisor.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { aborted } from '../../kit/promises.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { Log } from '../../observe/log.ts';
import type { Metrics } from '../../observe/metrics.ts';
import { lanes } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type {
  AuthorizationProof,
  ComponentClient,
  EntryAccess,
  EntryChange,
  InventoryStore,
  RemoteWatcher,
  ReportSink,
  RunStore,
  TokenIssuer,
} from '../ports.ts';
import { AbandonmentReporter } from './abandonments.ts';
import { Breakers } from './breakers.ts';
import { backoff, ComponentCaller } from './component-caller.ts';
import type { Addresses } from './component-request.ts';
import { EntryReconciler } from './entry-reconciler.ts';
import { EntryStatus } from './entry-status.ts';
import { FactsReader } from './facts-reader.ts';
import { registerInventoryGauges } from './gauges.ts';
import { Limits } from './limits.ts';
import { Memories } from './memories.ts';
import { type InventoryMetrics, inventoryMetrics } from './metrics.ts';
import { OutputWriter } from './output-writer.ts';
import { type RegistrationChange, RegistrationReconciler, type Registrations } from './registrations.ts';
import { ReportHandler } from './report-handler.ts';
import { RunReconciler } from './run-reconciler.ts';
import { RunReporter } from './run-reporter.ts';
import { RunSource } from './run-source.ts';

interface InventoryManagerDeps extends Addresses {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: Registrations;
  readonly components: ComponentClient;
  readonly tokens: TokenIssuer;
  readonly access: EntryAccess;
  readonly remote: RemoteWatcher;
  readonly authorization: AuthorizationProof;
  readonly client: Client;
  readonly journal: Journal;
  readonly events: EventRecorder;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Named by the journal if the user who abandoned a component is unknown. */
  readonly account: string;
  readonly watchAgeMs: () => number;
}

/** Concurrent reconciles of keys. */
const workers = 256;
/** Of these, not for keys in the lane `time`. */
const reservedWorkers = 64;
const entryWorkers = 32;
/** Runs after a registration changed are spread: 30 ms per key, at most five minutes. */
const spread = { maxMs: 300_000, perKeyMs: 30 };

/** What exists only while this replica leads. */
interface Leader {
  readonly memories: Memories;
  readonly reconciler: RunReconciler;
  readonly source: RunSource;
  readonly reports: ReportHandler;
}

/**
 * Runs the components of each entry when their inputs change, at intervals, and for retries: one
 * run at a time for each key, a component of an entry.
 *   watches ─▶ RunSource ─▶ queue ─▶ RunReconciler ─▶ plan ─▶ record, call, outputs
 *   reports ─▶ ReportHandler ─────────────┘
 *   entries ─▶ EntryReconciler ─▶ finalizer, access, watches, status
 */
export class InventoryManager {
  readonly #deps: InventoryManagerDeps;
  readonly #queue = hintSource('run');
  /** Entries whose status may have changed. */
  readonly #statusHints = hintSource('status');
  /** Registrations whose conditions may have changed. */
  readonly #registrationHints = hintSource('breaker');
  readonly #limits: Limits;
  readonly #breakers: Breakers;
  /** As the watch, or a later write or live read of this process, returned them. */
  readonly #latestEntries: WriteThroughCache<Entry>;
  readonly #facts: FactsReader;
  readonly #entryReconciler: EntryReconciler;
  readonly #abandonments: AbandonmentReporter;
  readonly #metrics: InventoryMetrics;
  /** From the start of the controller of runs; `#leads` once all keys are known. */
  #leader: Leader | undefined;
  #leads = false;

  constructor(deps: InventoryManagerDeps) {
    this.#deps = deps;
    const { entries, runs, registrations, clock, access, remote, authorization, watchAgeMs } = deps;
    this.#latestEntries = new WriteThroughCache({
      watched: (uid) => entries.find(uid),
      uidOf: ({ ref }) => ref.uid,
      // However late the watch is.
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    });
    this.#facts = new FactsReader({ ...deps, onForeignWrite: (uid) => void this.#statusHints.hint(uid) });
    this.#metrics = inventoryMetrics(deps.metrics);
    this.#abandonments = new AbandonmentReporter(deps);
    this.#breakers = new Breakers({
      clock,
      onAdmitting: (component, how) => this.#limits.componentChanged(component, how),
      onStateChange: (component) => {
        this.#registrationHints.hint(component);
        // Not when it closes: the next run then updates each entry, so that an outage costs it one
        // write.
        if (this.#breakers.isOpen(component)) this.#enqueueWaitingEntries(component);
      },
    });
    this.#limits = new Limits({
      registrations,
      authorizationProved: () => authorization.proved,
      isPrepared: (uid) => this.#entryReconciler.isPrepared(uid),
      breakerAdmits: (component) => this.#breakers.admit(component),
      onUnreachable: (text) => this.#leader?.reconciler.unreachable(text),
      laneOf: (text) => this.#leader?.memories.get(text)?.lane,
      wake: (keys = []) => this.#enqueueRuns(keys),
    });
    const memories = (): Memories | undefined => (this.#leads ? this.#leader?.memories : undefined);
    const status = new EntryStatus({
      registrations,
      runs,
      memories,
      facts: this.#facts,
      clock,
      endpointProblem: (component) => this.#breakers.problem(component),
      remoteProblem: (uid) => (this.#entryReconciler.isWatching(uid) ? remote.problem(uid) : null),
    });
    this.#entryReconciler = new EntryReconciler({
      entries,
      runs,
      registrations,
      access,
      remote,
      status,
      abandonments: this.#abandonments,
      latestEntries: this.#latestEntries,
      memories,
      clock,
      onPrepared: (uid) => this.#limits.entryChanged(uid),
    });
    registerInventoryGauges(deps.metrics, {
      entries,
      memories,
      runs,
      registrations,
      breakers: this.#breakers,
      clock,
      watchAgeMs,
    });
  }

  /** In start order; each starts once the previous one has synced. Only on the leader. */
  controllers(): Runnable[] {
    return [
      { name: 'inventory-fence', run: (signal, onSynced) => this.#prove(signal, onSynced) },
      { name: 'inventory-runs', run: (signal, onSynced) => this.#run(signal, onSynced) },
      this.#entryController(),
      this.#registrationController(),
    ];
  }

  /** Whether this replica leads and accepts reports: after all keys are known. */
  get leads(): boolean {
    return this.#leads;
  }

  relisted(): void {
    this.#metrics.relisted('gone');
  }

  /** Only the leader accepts reports. */
  readonly reports: ReportSink = {
    report: async (run, credentialId, body) =>
      (this.#leads ? await this.#leader?.reports.report(run, credentialId, body) : undefined) ?? {
        status: 503,
        code: 'NotLeading',
        message: 'this replica is not the leader; only the leader accepts reports; report again',
      },
    rejected: async (run, credentialId, code) => this.#leader?.reports.rejected(run, credentialId, code),
  };

  /** Syncs at once, so that the next controllers start; no run starts before the proof. */
  async #prove(signal: AbortSignal, onSynced: () => void): Promise<void> {
    onSynced();
    await this.#deps.authorization.prove(signal);
    this.#enqueueRuns([...(this.#leader?.memories.all() ?? [])].map(({ text }) => text));
    await aborted(signal);
  }

  async #run(signal: AbortSignal, onSynced: () => void): Promise<void> {
    const { registrations, log, metrics, clock, random } = this.#deps;
    this.#limits.clear();
    this.#breakers.clear();
    const leader = this.#startLeading(signal);
    this.#leader = leader;
    const controller = new Controller({
      name: 'inventory-runs',
      sources: [this.#queue, leader.source],
      reconciler: leader.reconciler,
      lanes: Object.keys(lanes).length,
      workers,
      reservedForUrgentLanes: reservedWorkers,
      backoff,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-runs'),
    });
    const stop = registrations.onChange((changes) => this.#registrationsChanged(leader, changes, signal));
    try {
      await controller.run(signal, () => {
        // Not earlier: an entry whose keys are unknown would seem to have no components.
        this.#leads = true;
        this.#enqueueAllEntries();
        onSynced();
      });
    } finally {
      stop();
      this.#leads = false;
      this.#leader = undefined;
      this.#entryReconciler.clear();
    }
  }

  /** Its parts start no write after `signal` aborts. */
  #startLeading(signal: AbortSignal): Leader {
    const { entries, runs, registrations, access, events, log, clock, tokens } = this.#deps;
    const latestEntries = this.#latestEntries;
    // Every call and write adds a listener; Node.js would warn about more than ten.
    setMaxListeners(0, signal);
    const memories = new Memories();
    const onStatusChange = (uid: string): void => void this.#statusHints.hint(uid);
    const reporter = new RunReporter({ onStatusChange, metrics: this.#metrics, events, log });
    const parts = { ...this.#deps, signal, memories, reporter };
    const reconciler = new RunReconciler({
      ...parts,
      facts: this.#facts,
      limits: this.#limits,
      caller: new ComponentCaller({ ...parts, breakers: this.#breakers, addresses: this.#deps }),
      outputWriter: new OutputWriter({ entries, runs, access, registrations, latestEntries }),
      queue: this.#queue,
      onRetired: (key, entry, { abandoned }) => {
        onStatusChange(key.entryUid);
        if (abandoned) this.#abandonments.report(entry, key.component);
      },
    });
    return {
      memories,
      reconciler,
      source: new RunSource({ ...this.#deps, memories, reconciler, metrics: this.#metrics, onStatusChange }),
      reports: new ReportHandler({
        memories,
        reconciler,
        facts: this.#facts,
        runs,
        tokens,
        enqueue: (text) => this.#enqueueRuns([text]),
        clock,
        signal,
        log,
      }),
    };
  }

  #registrationsChanged({ source }: Leader, changes: readonly RegistrationChange[], signal: AbortSignal): void {
    const { registrations, log } = this.#deps;
    this.#breakers.forgetUnregistered((component) => registrations.get(component) !== undefined);
    for (const { registration, isNewEndpoint } of changes) {
      if (isNewEndpoint) this.#breakers.forget(registration.name);
      const withinMs = (keys: number): number => Math.min(spread.maxMs, keys * spread.perKeyMs);
      source.registrationChanged(registration, withinMs, signal).catch((error: unknown) => {
        if (!signal.aborted)
          log.error('failed to trigger all runs after a registration change', {
            component: registration.name,
            error: describe(error),
          });
      });
      this.#limits.componentChanged(registration.name, 'closed');
      this.#registrationHints.hint(registration.name);
    }
    // The status of each entry contains its components.
    this.#enqueueAllEntries();
  }

  #enqueueRuns(keys: Iterable<string>): void {
    for (const text of keys)
      this.#queue.hint(text, 'slot', { lane: this.#leader?.memories.get(text)?.lane ?? lanes.time });
  }

  /** Their status says whether the endpoint of the component accepts calls. */
  #enqueueWaitingEntries(component: string): void {
    for (const { key, pending } of this.#leader?.memories.all() ?? [])
      if (key.component === component && pending) this.#statusHints.hint(key.entryUid);
  }

  #enqueueAllEntries(): void {
    for (const { ref } of this.#deps.entries.list()) this.#statusHints.hint(ref.uid);
  }

  #entryController(): Runnable {
    const { entries, remote, clock, random, log, metrics } = this.#deps;
    const uidOf = (change: EntryChange): string[] => [change.entry.ref.uid];
    return new Controller({
      name: 'inventory-entries',
      sources: [
        fromSubscription('entry', entries, uidOf),
        this.#statusHints,
        fromSubscription<string>('remote-health', { subscribe: (listener) => remote.onHealth(listener) }, (uid) => [
          uid,
        ]),
      ],
      reconciler: this.#entryReconciler,
      workers: entryWorkers,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-entries'),
    });
  }

  #registrationController(): Runnable {
    const { registrations, client, clock, random, log, metrics } = this.#deps;
    const names: Subscribable<string> = {
      subscribe: (listener) => {
        for (const { name } of registrations.all()) listener(name);
        // A change of one registration may change the conditions of any other.
        return registrations.onChange(() => {
          for (const { name } of registrations.all()) listener(name);
        });
      },
      whenSynced: (signal = new AbortController().signal) => registrations.whenSynced(signal),
    };
    return new Controller({
      name: 'inventory-registrations',
      sources: [fromSubscription('registration', names, (name) => [name]), this.#registrationHints],
      reconciler: new RegistrationReconciler({ client, registrations, breakers: this.#breakers, clock }),
      workers: 4,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-registrations'),
    });
  }
}
