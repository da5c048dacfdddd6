import { Controller } from '../../engine/controller.ts';
import { done } from '../../engine/result.ts';
import { fromSubscription, type Subscribable } from '../../engine/sources/from-subscription.ts';
import { hintSource } from '../../engine/sources/hint.ts';
import type { Runnable } from '../../engine/supervisor.ts';
import { describe } from '../../kit/errors.ts';
import { aborted } from '../../kit/promises.ts';
import type { Client } from '../../kube/client.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { Metrics } from '../../observe/metrics.ts';
import { lanes } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import type { AuthorizationProof, EntryChange, ReportSink } from '../ports.ts';
import { AbandonmentReporter } from './abandonments.ts';
import { Breakers } from './breakers.ts';
import { EntryReconciler, WatchFallback } from './entry-reconciler.ts';
import { EntryStatus } from './entry-status.ts';
import { registerInventoryGauges } from './gauges.ts';
import type { KeyLoops } from './key-loop.ts';
import { type LeaderDeps, type LeaderState, startLeading } from './leader-state.ts';
import { Limits } from './limits.ts';
import { type InventoryMetrics, inventoryMetrics } from './metrics.ts';
import { type RegistrationChange, RegistrationReconciler } from './registrations.ts';

interface InventoryManagerDeps extends LeaderDeps {
  readonly authorization: AuthorizationProof;
  readonly client: Client;
  readonly metrics: Metrics;
  readonly watchAgeMs: () => number;
}

/** Concurrent reconciles of keys. Each lasts until its call is answered and handled. */
const workers = 256;
/** Of these, not for keys in the lane `time`. */
const reservedWorkers = 64;
const entryWorkers = 32;
/** Runs after a registration changed are spread: 30 ms per key, at most five minutes. */
const spread = { maxMs: 300_000, perKeyMs: 30 };

/**
 * Runs the components of each entry when their inputs change, at intervals, and for retries: one
 * run at a time for each key, a component of an entry.
 *   watches ─▶ KeyEventSource ─┐
 *   reports ─▶ ReportHandler ──┼─▶ KeyLoop ─▶ step ─▶ record, call, outputs, status
 *   queue ───▶ Limits ─────────┘
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
  readonly #entryReconciler: EntryReconciler;
  readonly #abandonments: AbandonmentReporter;
  readonly #metrics: InventoryMetrics;
  #leader: LeaderState | undefined;
  #runController: Controller | undefined;

  constructor(deps: InventoryManagerDeps) {
    this.#deps = deps;
    const { entries, runs, registrations, clock, access, remote, authorization } = deps;
    this.#latestEntries = new WriteThroughCache({
      watched: (uid) => entries.find(uid),
      uidOf: ({ ref }) => ref.uid,
      // However late the watch is.
      trustMs: Number.POSITIVE_INFINITY,
      clock,
    });
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
      onUnreachable: (text) => this.#leader?.loops.get(text)?.endpointUnavailable(),
      laneOf: (text) => this.#leader?.loops.get(text)?.lane,
      wake: (keys) => this.#runController?.wake(keys),
    });
    const loops = (): KeyLoops | undefined => this.#leader?.loops;
    const status = new EntryStatus({
      registrations,
      runs,
      loops,
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
      watchFallback: new WatchFallback({
        loops,
        trigger: (key, trigger) => this.#leader?.eventSource.trigger(key, trigger),
        clock,
        random: deps.random,
      }),
      loops,
      clock,
      onPrepared: (uid) => this.#limits.entryChanged(uid),
    });
    const { watchAgeMs } = deps;
    registerInventoryGauges(deps.metrics, {
      entries,
      loops,
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
      { name: 'inventory-runs', run: (signal, onSynced) => this.#runKeys(signal, onSynced) },
      this.#entryController(),
      this.#registrationController(),
    ];
  }

  /** Whether this replica leads and accepts reports: after all keys have their first events. */
  get leads(): boolean {
    return this.#leader !== undefined;
  }

  relisted(): void {
    this.#metrics.relisted('gone');
  }

  /** Only the leader accepts reports. */
  readonly reports: ReportSink = {
    report: async (run, credentialId, body) =>
      (await this.#leader?.reports.report(run, credentialId, body)) ?? {
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
    this.#runController?.wake();
    await aborted(signal);
  }

  async #runKeys(signal: AbortSignal, onSynced: () => void): Promise<void> {
    const { registrations, log, metrics, clock, random } = this.#deps;
    this.#limits.clear();
    this.#breakers.clear();
    const leader = startLeading(
      this.#deps,
      {
        limits: this.#limits,
        breakers: this.#breakers,
        abandonments: this.#abandonments,
        latestEntries: this.#latestEntries,
        metrics: this.#metrics,
        queue: this.#queue,
        statusHints: this.#statusHints,
      },
      signal,
    );
    const controller = new Controller({
      name: 'inventory-runs',
      sources: [this.#queue, leader.eventSource],
      reconciler: { reconcile: (text) => this.#reconcileKey(leader, text) },
      lanes: Object.keys(lanes).length,
      admit: (text) => this.#limits.admit(text),
      workers,
      reservedForUrgentLanes: reservedWorkers,
      clock,
      random,
      log,
      metrics: metrics.controller('inventory-runs'),
    });
    this.#runController = controller;
    const stop = registrations.onChange((changes) => this.#registrationsChanged(leader, changes, signal));
    try {
      await controller.run(signal, () => {
        // Not earlier: an entry whose keys have no event would seem to have no components.
        this.#leader = leader;
        this.#enqueueAllEntries();
        onSynced();
      });
    } finally {
      stop();
      this.#leader = undefined;
      this.#runController = undefined;
      this.#entryReconciler.clear();
    }
  }

  async #reconcileKey({ loops }: LeaderState, text: string) {
    const loop = loops.get(text);
    if (loop) await loop.reconcile();
    else this.#limits.release(text);
    return done;
  }

  #registrationsChanged(
    { eventSource }: LeaderState,
    changes: readonly RegistrationChange[],
    signal: AbortSignal,
  ): void {
    const { registrations, random, log } = this.#deps;
    this.#breakers.forgetUnregistered((component) => registrations.get(component) !== undefined);
    for (const { registration, isNewEndpoint } of changes) {
      if (isNewEndpoint) this.#breakers.forget(registration.name);
      const withinMs = (keys: number): number => Math.min(spread.maxMs, keys * spread.perKeyMs);
      eventSource.registrationChanged(registration, withinMs, random, signal).catch((error: unknown) => {
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

  /** Their status says whether the endpoint of the component accepts calls. */
  #enqueueWaitingEntries(component: string): void {
    for (const { key, state } of this.#leader?.loops.all() ?? [])
      if (key.component === component && state.phase === 'queued') this.#statusHints.hint(key.entryUid);
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
