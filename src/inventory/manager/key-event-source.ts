import type { Source } from '../../engine/source.ts';
import { jittered } from '../../kit/backoff.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { pace } from '../../kit/pace.ts';
import { lanes, type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EntryChange, InventoryStore, RecordChange, RemoteEvent, RemoteWatcher, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import {
  isContentChanged,
  isKubeconfigReplaced,
  isKubeconfigTrigger,
  syncTrigger,
  triggersOf,
} from './entry-changes.ts';
import { isApplicable } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { InventoryMetrics } from './metrics.ts';
import type { RegistrationLister } from './registrations.ts';

interface KeyEventSourceDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: RegistrationLister;
  readonly registrationsSynced: (signal: AbortSignal) => Promise<void>;
  readonly loops: KeyLoops;
  readonly metrics: InventoryMetrics;
  readonly remote: Pick<RemoteWatcher, 'subscribe'>;
  readonly onRecordGone: (entryUid: string) => void;
  readonly onResync: (entryUid: string) => void;
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

/** Turns changes of entries, records, and remote objects into events of keys. */
export class KeyEventSource implements Source {
  readonly name = 'inventory';
  readonly #deps: KeyEventSourceDeps;
  #isStartup = true;
  /** Entries of startup whose keys have no event yet. */
  readonly #unstarted = new Set<string>();
  /** Keys whose records came before the first events of their entry, by entry UID. */
  readonly #recordsWithoutEntry = new Map<string, Map<string, ComponentKey>>();

  constructor(deps: KeyEventSourceDeps) {
    this.#deps = deps;
  }

  async start(_emit: unknown, signal: AbortSignal): Promise<void> {
    const { entries, runs, registrationsSynced, remote, metrics } = this.#deps;
    await Promise.all([entries.whenSynced(signal), runs.whenSynced(signal), registrationsSynced(signal)]);
    signal.throwIfAborted();
    metrics.relisted('start');
    const stops = [
      // Entries first: a record waits for the first events of its entry.
      entries.subscribe((change) => this.#onEntryChange(change)),
      runs.subscribe((change) => this.#onRecordChange(change)),
      remote.subscribe((event) => this.#onRemoteEvent(event)),
    ];
    signal.addEventListener('abort', () => stops.forEach((stop) => void stop()), { once: true });
    await this.#startAll(signal);
    this.#isStartup = false;
    void this.#resyncPeriodically(signal);
  }

  /** Does nothing if the watch shows no such entry. */
  trigger(key: ComponentKey, trigger: Trigger): void {
    if (!this.#deps.entries.find(key.entryUid)) return;
    this.#deps.metrics.triggered(key.component, trigger.reason);
    this.#deps.loops.of(key).trigger(trigger);
  }

  #onRemoteEvent({ entryUid, component, detail }: RemoteEvent): void {
    this.#startEntry(entryUid);
    this.trigger({ entryUid, component }, trigger(triggerReasons.remote, { detail }));
  }

  /**
   * Triggers the keys to which a changed registration applies, or that have its record, at random
   * times. `withinMs`: the period for a number of keys.
   */
  async registrationChanged(
    registration: Registration,
    withinMs: (keys: number) => number,
    random: () => number,
    signal: AbortSignal,
  ): Promise<void> {
    const { entries, runs, loops, clock } = this.#deps;
    const nowMs = clock.now();
    const { name: component } = registration;
    const keys = [...entries.list()].flatMap((entry) => {
      const key = { entryUid: entry.ref.uid, component };
      return isApplicable(entry, registration) || runs.find(key) ? [key] : [];
    });
    const spreadMs = withinMs(keys.length);
    const pause = pace(clock, signal);
    for (const key of keys) {
      await pause();
      if (!this.#isStarted(key.entryUid)) continue;
      const stored = runs.find(key);
      if (stored) loops.of(key).recordChanged(stored);
      const atMs = nowMs + random() * spreadMs;
      this.trigger(key, trigger(triggerReasons.registrationChanged, { atMs }));
    }
  }

  #onEntryChange(change: EntryChange): void {
    const { entry } = change;
    const { uid } = entry.ref;
    if (change.kind === 'gone') {
      this.#unstarted.delete(uid);
      this.#recordsWithoutEntry.delete(uid);
      this.#deps.loops.dropEntry(uid);
      return;
    }
    const { before } = change;
    if (this.#isStartup && !before) this.#unstarted.add(uid);
    if (this.#unstarted.has(uid)) return;
    if (before) this.#onUpdated(before, entry);
    else this.#onAppeared(entry);
    if (entry.deleting && !before?.deleting) this.#onDeleting(entry);
  }

  /** One entry at a time, so that its content is unpacked once for all of its keys. */
  async #startAll(signal: AbortSignal): Promise<void> {
    const pause = pace(this.#deps.clock, signal);
    for (const uid of this.#unstarted) {
      await pause();
      this.#startEntry(uid);
    }
  }

  /** Sends the first events of an entry that existed at startup. */
  #startEntry(uid: string): void {
    const entry = this.#deps.entries.find(uid);
    if (!this.#unstarted.delete(uid) || !entry) return;
    this.#onAppeared(entry);
    if (entry.deleting) this.#onDeleting(entry);
  }

  #isStarted(uid: string): boolean {
    return !this.#unstarted.has(uid) && this.#deps.entries.find(uid) !== undefined;
  }

  #onDeleting(entry: Entry): void {
    const { loops, runs } = this.#deps;
    for (const loop of loops.ofEntry(entry.ref.uid)) if (runs.find(loop.key)) loop.deleting();
  }

  #onUpdated(before: Entry, entry: Entry): void {
    const { registrations, runs, loops } = this.#deps;
    const contentChanged = isContentChanged(before, entry);
    const changed: { readonly key: ComponentKey; readonly triggers: readonly Trigger[] }[] = [];
    for (const registration of registrations.all()) {
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const record = runs.find(key)?.record;
      if (!record && !isApplicable(entry, registration)) continue;
      changed.push({ key, triggers: triggersOf(before, entry, registration, record, contentChanged) });
    }
    const readers = contentChanged ? changed.filter(({ triggers }) => triggers.some(isKubeconfigTrigger)).length : 0;
    const isSpread = readers > maxReadersAtOnce && isKubeconfigReplaced(before, entry);
    for (const key of this.#newlyAbandonedUnregistered(before, entry)) {
      // Without a registration, the key could not handle its record.
      loops.of(key).recordChanged(runs.find(key));
      this.trigger(key, trigger(triggerReasons.configChanged, { detail: '/metadata/annotations' }));
    }
    for (const { key, triggers } of changed) {
      for (const trigger of isSpread ? this.#spread(triggers) : triggers) this.trigger(key, trigger);
      if (contentChanged) loops.get(keyText(key))?.contentChanged();
    }
  }

  /** Keys with a record whose unregistered component is abandoned by this change. */
  #newlyAbandonedUnregistered(before: Entry, entry: Entry): ComponentKey[] {
    const { registrations, runs, loops } = this.#deps;
    return [...loops.ofEntry(entry.ref.uid)]
      .map(({ key }) => key)
      .filter((key) => !registrations.get(key.component) && runs.find(key))
      .filter(({ component }) => isAbandoned(entry, component) && !isAbandoned(before, component));
  }

  /** Delays the triggers of the kubeconfig by a random time. */
  #spread(triggers: readonly Trigger[]): readonly Trigger[] {
    const { clock, random } = this.#deps;
    const atMs = clock.now() + random() * rotationSpreadMs;
    return triggers.map((trigger) => (isKubeconfigTrigger(trigger) ? { ...trigger, atMs } : trigger));
  }

  #onAppeared(entry: Entry): void {
    const { registrations, runs, loops } = this.#deps;
    const { uid } = entry.ref;
    for (const key of this.#recordsWithoutEntry.get(uid)?.values() ?? []) loops.of(key).recordChanged(runs.find(key));
    this.#recordsWithoutEntry.delete(uid);
    const lane = this.#isStartup ? lanes.time : lanes.manual;
    for (const registration of registrations.all()) {
      const key = { entryUid: uid, component: registration.name };
      const trigger = syncTrigger(entry, registration, runs.find(key) !== undefined, lane);
      if (trigger) this.trigger(key, trigger);
    }
  }

  /** In case events were lost. The first resync follows after half an hour. */
  async #resyncPeriodically(signal: AbortSignal): Promise<void> {
    const { entries, metrics, clock, random } = this.#deps;
    try {
      for (;;) {
        await sleep(clock, jittered(resyncMs, resyncJitter, random), signal);
        metrics.relisted('periodic');
        const pause = pace(clock, signal);
        for (const entry of [...entries.list()]) {
          await pause();
          this.#resync(entry);
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Passes its record and a trigger to each idle key. */
  #resync({ ref }: Entry): void {
    const { entries, registrations, runs, loops, onResync } = this.#deps;
    const entry = entries.find(ref.uid);
    if (!entry) return;
    onResync(ref.uid);
    for (const registration of registrations.all()) {
      const key = { entryUid: ref.uid, component: registration.name };
      const stored = runs.find(key);
      const trigger = syncTrigger(entry, registration, stored !== undefined, lanes.time);
      const state = loops.get(keyText(key))?.state;
      // The key became `gone` before the watch reported its record.
      if (stored && state?.phase === 'gone' && !state.stored) loops.of(key).recordChanged(stored);
      if (!trigger || (state?.phase ?? 'idle') !== 'idle') continue;
      if (stored) loops.of(key).recordChanged(stored);
      loops.of(key).trigger(trigger);
    }
  }

  #onRecordChange(change: RecordChange): void {
    const { loops } = this.#deps;
    if (change.kind === 'changed') {
      const { entry, component } = change.stored.record;
      const key = { entryUid: entry.uid, component };
      if (this.#isStarted(entry.uid)) loops.of(key).recordChanged(change.stored);
      else this.#keepUntilEntry(key);
      return;
    }
    this.#recordsWithoutEntry.get(change.key.entryUid)?.delete(keyText(change.key));
    loops.get(keyText(change.key))?.recordChanged(undefined);
    this.#onReaderRemoved(change.key.entryUid);
    this.#deps.onRecordGone(change.key.entryUid);
  }

  #keepUntilEntry(key: ComponentKey): void {
    const keys = this.#recordsWithoutEntry.get(key.entryUid) ?? new Map<string, ComponentKey>();
    this.#recordsWithoutEntry.set(key.entryUid, keys.set(keyText(key), key));
  }

  #onReaderRemoved(entryUid: string): void {
    for (const loop of this.#deps.loops.ofEntry(entryUid)) {
      const awaited = loop.state.stored?.record.lastOutcome?.missing.find(({ want }) => want === 'noReaders');
      if (!awaited) {
        loop.contentChanged();
        continue;
      }
      this.trigger(loop.key, trigger(triggerReasons.inputArrived, { detail: awaited.path }));
    }
  }
}
