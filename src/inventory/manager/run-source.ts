import type { Emit, Source } from '../../engine/source.ts';
import { jittered } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { pace } from '../../kit/pace.ts';
import { isApplicable } from '../core/facts.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import type { ComponentKey } from '../key.ts';
import type { EntryChange, InventoryStore, RecordChange, RemoteWatcher, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { isContentChanged, isKubeconfigReplaced, isKubeconfigTrigger, triggersOf } from './entry-changes.ts';
import type { KeyMemory, Memories } from './memories.ts';
import type { InventoryMetrics } from './metrics.ts';
import type { RegistrationLister } from './registrations.ts';
import type { RunReconciler } from './run-reconciler.ts';

interface RunSourceDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: RegistrationLister & { whenSynced(signal: AbortSignal): Promise<void> };
  readonly memories: Memories;
  readonly reconciler: RunReconciler;
  readonly metrics: InventoryMetrics;
  readonly remote: Pick<RemoteWatcher, 'subscribe' | 'onHealth'>;
  /** A record is gone, or the status is due to be compared. */
  readonly onStatusChange: (entryUid: string) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Runs of more readers of a replaced kubeconfig are spread over `rotationSpreadMs`. */
const maxReadersAtOnce = 5;
const rotationSpreadMs = 60_000;

/** From one resync to the next, before jitter. */
const resyncMs = 1_800_000;
const resyncJitter = 0.1;

/** Emits the keys of changed entries, records, and remote objects, and says what changed. */
export class RunSource implements Source {
  readonly name = 'inventory';
  readonly #deps: RunSourceDeps;
  #emit: Emit = () => {};
  #isStartup = true;

  constructor(deps: RunSourceDeps) {
    this.#deps = deps;
  }

  async start(emit: Emit, signal: AbortSignal): Promise<void> {
    const { entries, runs, registrations, remote, metrics, clock } = this.#deps;
    await Promise.all([entries.whenSynced(signal), runs.whenSynced(signal), registrations.whenSynced(signal)]);
    signal.throwIfAborted();
    this.#emit = emit;
    metrics.relisted('start');
    const stops = [
      runs.subscribe((change) => this.#onRecordChange(change)),
      entries.subscribe((change) => this.#onEntryChange(change)),
      remote.subscribe(({ entryUid, component, detail }) =>
        this.trigger({ entryUid, component }, trigger(triggerReasons.remote, { detail })),
      ),
      remote.onHealth((entryUid) => this.#emitKnown(entryUid)),
    ];
    signal.addEventListener('abort', () => stops.forEach((stop) => void stop()), { once: true });
    this.#isStartup = false;
    const pause = pace(clock, signal);
    for (const entry of [...entries.list()]) {
      await pause();
      this.#emitAll(entry);
    }
    void this.#resyncPeriodically(signal);
  }

  /** Does nothing if the watch shows no such entry. */
  trigger(key: ComponentKey, trigger: Trigger): void {
    const { entries, metrics, memories, reconciler } = this.#deps;
    if (!entries.find(key.entryUid)) return;
    metrics.triggered(key.component, trigger.reason);
    reconciler.trigger(memories.of(key), trigger);
  }

  /**
   * Triggers the keys to which a changed registration applies, or that have its record, at random
   * times. `withinMs`: the period for a number of keys.
   */
  async registrationChanged(
    registration: Registration,
    withinMs: (keys: number) => number,
    signal: AbortSignal,
  ): Promise<void> {
    const { entries, clock, random } = this.#deps;
    const nowMs = clock.now();
    const keys = [...entries.list()].flatMap((entry) => this.#keysOf(entry, [registration]));
    const spreadMs = withinMs(keys.length);
    const pause = pace(clock, signal);
    for (const key of keys) {
      await pause();
      this.trigger(key, trigger(triggerReasons.registrationChanged, { atMs: nowMs + random() * spreadMs }));
    }
  }

  #onEntryChange(change: EntryChange): void {
    const { memories, reconciler, runs } = this.#deps;
    const { entry } = change;
    if (change.kind === 'gone') {
      for (const memory of memories.dropEntry(entry.ref.uid)) {
        reconciler.drop(memory);
        // Its entry may come back, for example if its kind was not served for a moment.
        if (runs.find(memory.key)) memories.of(memory.key);
      }
      return;
    }
    if (this.#isStartup) return;
    const { before } = change;
    if (before) this.#onUpdated(before, entry);
    else this.#onAppeared(entry);
  }

  /** Records may have come before their entry. */
  #onAppeared(entry: Entry): void {
    const { runs, registrations } = this.#deps;
    for (const key of this.#keysOf(entry, registrations.all()))
      if (!runs.find(key)) this.trigger(key, trigger(triggerReasons.created));
    this.#emitAll(entry);
  }

  #onUpdated(before: Entry, entry: Entry): void {
    const { registrations, runs, memories } = this.#deps;
    const { uid } = entry.ref;
    const contentChanged = isContentChanged(before, entry);
    const changed = [...registrations.all()].flatMap((registration) =>
      this.#keysOf(entry, [registration]).map((key) => {
        const record = runs.find(key)?.record;
        return { key, triggers: triggersOf(before, entry, registration, record, contentChanged) };
      }),
    );
    const readers = contentChanged ? changed.filter(({ triggers }) => triggers.some(isKubeconfigTrigger)).length : 0;
    const isSpread = readers > maxReadersAtOnce && isKubeconfigReplaced(before, entry);
    for (const { key, triggers } of changed)
      for (const trigger of isSpread ? this.#spread(triggers) : triggers) this.trigger(key, trigger);
    // Also of a suspended entry, whose runs may no longer write.
    if (entry.deleting && !before.deleting) this.#emitKnown(uid);
    // Without a registration, only its abandonment moves a component.
    for (const memory of memories.ofEntry(uid)) {
      const { component } = memory.key;
      if (!registrations.get(component) && isAbandoned(entry, component) && !isAbandoned(before, component))
        this.trigger(memory.key, trigger(triggerReasons.configChanged, { detail: '/metadata/annotations' }));
    }
  }

  /** Delays the triggers of the kubeconfig by a random time. */
  #spread(triggers: readonly Trigger[]): readonly Trigger[] {
    const { clock, random } = this.#deps;
    const atMs = clock.now() + random() * rotationSpreadMs;
    return triggers.map((trigger) => (isKubeconfigTrigger(trigger) ? { ...trigger, atMs } : trigger));
  }

  #onRecordChange(change: RecordChange): void {
    const { entries, memories, onStatusChange } = this.#deps;
    if (change.kind === 'changed') {
      const { stored } = change;
      const { entry, component } = stored.record;
      const memory = memories.of({ entryUid: entry.uid, component });
      // This process wrote it.
      if (memory.version !== stored.resourceVersion) this.#emitKey(memory);
      return;
    }
    const { entryUid } = change.key;
    if (!entries.find(entryUid)) memories.forget(memories.of(change.key));
    // Others may wait until the component is gone.
    this.#emitKnown(entryUid);
    onStatusChange(entryUid);
  }

  /** In case events were lost. The first resync follows after half an hour. */
  async #resyncPeriodically(signal: AbortSignal): Promise<void> {
    const { entries, metrics, clock, random, onStatusChange } = this.#deps;
    try {
      for (;;) {
        await sleep(clock, jittered(resyncMs, resyncJitter, random), signal);
        metrics.relisted('periodic');
        const pause = pace(clock, signal);
        for (const entry of [...entries.list()]) {
          await pause();
          onStatusChange(entry.ref.uid);
          this.#emitAll(entry);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** All keys of an entry, also those of unregistered components with a record. */
  #emitAll(entry: Entry): void {
    const { memories, registrations } = this.#deps;
    for (const key of this.#keysOf(entry, registrations.all())) memories.of(key);
    this.#emitKnown(entry.ref.uid);
  }

  #emitKnown(entryUid: string): void {
    for (const memory of this.#deps.memories.ofEntry(entryUid)) this.#emitKey(memory);
  }

  #emitKey({ text }: KeyMemory): void {
    this.#emit(text, this.name, { lane: lanes.time });
  }

  /** Those that have a record, or may get one. */
  #keysOf(entry: Entry, registrations: Iterable<Registration>): ComponentKey[] {
    const { runs } = this.#deps;
    return [...registrations].flatMap((registration) => {
      const key = { entryUid: entry.ref.uid, component: registration.name };
      return runs.find(key) || (!entry.deleting && isApplicable(entry, registration)) ? [key] : [];
    });
  }
}
