import type { Source } from '../../engine/source.ts';
import { jittered } from '../../kit/backoff.ts';
import type { Cancel, Clock } from '../../kit/clock.ts';
import { pace } from '../../kit/pace.ts';
import { type Trigger, trigger, triggerReasons } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EntryChange, InventoryStore, RecordChange, RemoteEvent, RemoteEvents, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { firstTrigger, hasOtherContent, isOfKubeconfig, isRotated, triggersOf } from './entry-changes.ts';
import { isFor } from './entry-snapshot.ts';
import type { KeyLoops } from './key-loop.ts';
import type { InventoryMetrics } from './metrics.ts';
import type { Registry } from './registrations.ts';

interface KeyEventSourceDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registry: Registry;
  readonly registriesSynced: (signal: AbortSignal) => Promise<void>;
  readonly loops: KeyLoops;
  readonly metrics: InventoryMetrics;
  readonly remote: Pick<RemoteEvents, 'subscribe'>;
  readonly onRecordGone: (entryUid: string) => void;
  /** An entry is looked at without having changed. */
  readonly onLook: (entryUid: string) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** More readers than this do not all start at once with a new kubeconfig, but within a minute. */
const readersAtOnce = 5;
const rotationMs = 60_000;

/** Turns what is watched into events of keys. */
export class KeyEventSource implements Source {
  readonly name = 'inventory';
  readonly #deps: KeyEventSourceDeps;
  #isStart = true;
  /** Entries that were there at the start and that no key has heard of yet. */
  readonly #waiting = new Set<string>();
  /** By entry: keys whose records came before the entry did. */
  readonly #early = new Map<string, Map<string, ComponentKey>>();

  constructor(deps: KeyEventSourceDeps) {
    this.#deps = deps;
  }

  async start(_emit: unknown, signal: AbortSignal): Promise<void> {
    const { entries, runs, registriesSynced, remote, metrics } = this.#deps;
    await Promise.all([entries.whenSynced(signal), runs.whenSynced(signal), registriesSynced(signal)]);
    signal.throwIfAborted();
    metrics.relisted('start');
    const stops = [
      // First: each record that comes before its entry was introduced waits for that.
      entries.subscribe((change) => this.#entryChanged(change)),
      runs.subscribe((change) => this.#recordChanged(change)),
      remote.subscribe((event) => this.#remote(event)),
    ];
    signal.addEventListener('abort', () => stops.forEach((stop) => void stop()), { once: true });
    await this.#introduceAll(signal);
    this.#isStart = false;
    const { clock, random } = this.#deps;
    const all = { all: () => entries.list(), look: (entry: Entry) => this.#look(entry) };
    sweep({ ...all, begins: () => metrics.relisted('periodic'), clock, random }, signal);
  }

  trigger(key: ComponentKey, trigger: Trigger): void {
    // What is watched elsewhere may tell of an entry that is gone.
    if (!this.#deps.entries.find(key.entryUid)) return;
    this.#deps.metrics.triggered(key.component, trigger.reason);
    this.#deps.loops.of(key).trigger(trigger);
  }

  #remote({ entryUid, component, about }: RemoteEvent): void {
    this.#introduce(entryUid);
    this.trigger({ entryUid, component }, trigger(triggerReasons.remote, { about }));
  }

  /** A registration is new or has changed: its keys are looked at, each at a time of its own until `withinMs` from now. */
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
      return isFor(entry, registration) || runs.find(key) ? [key] : [];
    });
    const spreadMs = withinMs(keys.length);
    const pause = pace(clock, signal);
    for (const key of keys) {
      await pause();
      if (!this.#isIntroduced(key.entryUid)) continue;
      // Nothing could be said of it while the component was not known.
      const stored = runs.find(key);
      if (stored) loops.of(key).recordChanged(stored);
      const atMs = nowMs + random() * spreadMs;
      this.trigger(key, trigger(triggerReasons.registrationChanged, { atMs }));
    }
  }

  #entryChanged(change: EntryChange): void {
    const { entry } = change;
    const { uid } = entry.ref;
    if (change.kind === 'gone') {
      this.#waiting.delete(uid);
      this.#early.delete(uid);
      this.#deps.loops.dropEntry(uid);
      return;
    }
    const { before } = change;
    if (this.#isStart && !before) this.#waiting.add(uid);
    if (this.#waiting.has(uid)) return;
    if (before) this.#changed(before, entry);
    else this.#appeared(entry);
    if (entry.deleting && !before?.deleting) this.#deleting(entry);
  }

  /** Entry by entry, with the content of each at hand for all of its keys. */
  async #introduceAll(signal: AbortSignal): Promise<void> {
    const pause = pace(this.#deps.clock, signal);
    for (const uid of this.#waiting) {
      await pause();
      this.#introduce(uid);
    }
  }

  #introduce(uid: string): void {
    const entry = this.#deps.entries.find(uid);
    if (!this.#waiting.delete(uid) || !entry) return;
    this.#appeared(entry);
    if (entry.deleting) this.#deleting(entry);
  }

  #isIntroduced(uid: string): boolean {
    return !this.#waiting.has(uid) && this.#deps.entries.find(uid) !== undefined;
  }

  #deleting(entry: Entry): void {
    const { loops, runs } = this.#deps;
    for (const loop of loops.ofEntry(entry.ref.uid)) if (runs.find(loop.key)) loop.deleting();
  }

  #changed(before: Entry, entry: Entry): void {
    const { registry, runs, loops } = this.#deps;
    const otherContent = hasOtherContent(before, entry);
    const found: { readonly key: ComponentKey; readonly triggers: readonly Trigger[] }[] = [];
    for (const registration of registry.all()) {
      const key = { entryUid: entry.ref.uid, component: registration.name };
      const record = runs.find(key)?.record;
      if (!record && !isFor(entry, registration)) continue;
      found.push({ key, triggers: triggersOf(before, entry, registration, record, otherContent) });
    }
    const readers = otherContent ? found.filter(({ triggers }) => triggers.some(isOfKubeconfig)).length : 0;
    const isSpread = readers > readersAtOnce && isRotated(before, entry);
    for (const { key, triggers } of found) {
      for (const trigger of isSpread ? this.#spread(triggers) : triggers) this.trigger(key, trigger);
      if (otherContent) loops.get(keyText(key))?.contentChanged();
    }
  }

  /** What is about the kubeconfig, at a time of its own. */
  #spread(triggers: readonly Trigger[]): readonly Trigger[] {
    const { clock, random } = this.#deps;
    const atMs = clock.now() + random() * rotationMs;
    return triggers.map((trigger) => (isOfKubeconfig(trigger) ? { ...trigger, atMs } : trigger));
  }

  #appeared(entry: Entry): void {
    const { registry, runs, loops } = this.#deps;
    const { uid } = entry.ref;
    for (const key of this.#early.get(uid)?.values() ?? []) loops.of(key).recordChanged(runs.find(key));
    this.#early.delete(uid);
    for (const registration of registry.all()) {
      const key = { entryUid: uid, component: registration.name };
      const trigger = firstTrigger(entry, registration, runs.find(key) !== undefined, this.#isStart);
      if (trigger) this.trigger(key, trigger);
    }
  }

  /** As if its events had been lost. Of what is at rest and as its record says, nothing comes. */
  #look({ ref }: Entry): void {
    const { entries, registry, runs, loops, onLook } = this.#deps;
    const entry = entries.find(ref.uid);
    if (!entry) return;
    onLook(ref.uid);
    for (const registration of registry.all()) {
      const key = { entryUid: ref.uid, component: registration.name };
      const stored = runs.find(key);
      const trigger = firstTrigger(entry, registration, stored !== undefined, true);
      const state = loops.get(keyText(key))?.state;
      // It was taken for one that never ran.
      if (stored && state?.phase === 'gone' && !state.stored) loops.of(key).recordChanged(stored);
      if (!trigger || (state?.phase ?? 'idle') !== 'idle') continue;
      if (stored) loops.of(key).recordChanged(stored);
      loops.of(key).trigger(trigger);
    }
  }

  #recordChanged(change: RecordChange): void {
    const { loops } = this.#deps;
    if (change.kind === 'changed') {
      const { entry, component } = change.stored.record;
      const key = { entryUid: entry.uid, component };
      if (this.#isIntroduced(entry.uid)) loops.of(key).recordChanged(change.stored);
      else this.#keep(key);
      return;
    }
    this.#early.get(change.key.entryUid)?.delete(keyText(change.key));
    loops.get(keyText(change.key))?.recordChanged(undefined);
    this.#readerGone(change.key.entryUid);
    this.#deps.onRecordGone(change.key.entryUid);
  }

  #keep(key: ComponentKey): void {
    const keys = this.#early.get(key.entryUid) ?? new Map<string, ComponentKey>();
    this.#early.set(key.entryUid, keys.set(keyText(key), key));
  }

  /** Whoever waits until nobody reads its outputs any more may go on. */
  #readerGone(entryUid: string): void {
    for (const loop of this.#deps.loops.ofEntry(entryUid)) {
      const waits = loop.state.stored?.record.lastOutcome?.missing.find(({ want }) => want === 'noReaders');
      if (!waits) {
        loop.contentChanged();
        continue;
      }
      this.trigger(loop.key, trigger(triggerReasons.inputArrived, { about: waits.path }));
    }
  }
}

interface SweepDeps<Item> {
  readonly all: () => Iterable<Item>;
  readonly look: (item: Item) => void;
  /** Everything is going to be looked at. */
  readonly begins: () => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

const everyMs = 1_800_000;
const jitter = 0.1;
/** So many at a time, and then a pause: nobody is to notice. */
const slice = { items: 50, pauseMs: 50 };

/** Looks at everything every half hour, until the signal aborts: events are quick, but what is certain is what is there. */
function sweep<Item>(deps: SweepDeps<Item>, signal: AbortSignal): void {
  const { all, look, begins, clock, random } = deps;
  let cancel: Cancel = () => {};
  const later = (): void => {
    cancel = clock.schedule(jittered(everyMs, jitter, random), () => {
      begins();
      go([...all()]);
    });
  };
  const go = (items: Item[]): void => {
    for (const item of items.splice(0, slice.items)) look(item);
    if (items.length === 0) later();
    else cancel = clock.schedule(slice.pauseMs, () => go(items));
  };
  if (signal.aborted) return;
  later();
  signal.addEventListener('abort', () => cancel(), { once: true });
}
