import { teardownFinalizer } from '../../api/inventory/names.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import { jittered } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import { lanes, trigger, triggerReasons } from '../core/triggers.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EntryAccess, InventoryStore, RemoteWatcher, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import type { AbandonmentReporter } from './abandonments.ts';
import { isApplicable } from './entry-snapshot.ts';
import type { EntryStatus } from './entry-status.ts';
import type { KeyEventSource } from './key-event-source.ts';
import type { KeyLoops } from './key-loop.ts';
import type { RegistrationLister } from './registrations.ts';

interface EntryReconcilerDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registrations: RegistrationLister;
  readonly access: EntryAccess;
  readonly remote: RemoteWatcher;
  readonly status: EntryStatus;
  readonly abandonments: AbandonmentReporter;
  readonly latestEntries: WriteThroughCache<Entry>;
  readonly watchFallback: WatchFallback;
  /** Undefined until this replica leads and all keys have their first events. */
  readonly loops: () => KeyLoops | undefined;
  readonly clock: Clock;
  readonly onPrepared: (entryUid: string) => void;
}

const statusSpacingMs = 250;

/** Reconciles an entry as a whole: finalizer and access, remote watches, status, deletion. */
export class EntryReconciler implements Reconciler {
  readonly #deps: EntryReconcilerDeps;
  /** By entry UID: its kubeconfig producers when prepared. New ones need a new preparation. */
  readonly #prepared = new Map<string, string>();
  readonly #watching = new Set<string>();
  /** By UID, monotonic milliseconds. */
  readonly #statusWrittenAt = new Map<string, number>();

  constructor(deps: EntryReconcilerDeps) {
    this.#deps = deps;
  }

  /** Whether this process prepared the entry, or it is being deleted. */
  isPrepared(entryUid: string): boolean {
    return this.#prepared.has(entryUid) || this.#deps.entries.find(entryUid)?.deleting === true;
  }

  isWatching(entryUid: string): boolean {
    return this.#watching.has(entryUid);
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<Result> {
    const watched = this.#deps.entries.find(uid);
    if (!watched) {
      this.#forget(uid);
      return done;
    }
    const { latestEntries } = this.#deps;
    try {
      const entry = latestEntries.get(uid) ?? watched;
      if (entry.deleting) {
        if (await this.#finalize(entry, signal)) return done;
      } else {
        await this.#prepare(entry, signal);
      }
      const fallbackInMs = this.#watchRemotely(entry);
      const result = await this.#writeStatus(latestEntries.get(uid) ?? entry, signal);
      return result.kind === 'done' && fallbackInMs !== Number.POSITIVE_INFINITY ? after(fallbackInMs) : result;
    } catch (error) {
      // Deleted meanwhile; the watch reports it.
      if (isNotFound(error)) return done;
      throw error;
    }
  }

  /** Adds the finalizer, and the access of components that start together. Runs may start then. */
  async #prepare(entry: Entry, signal: AbortSignal): Promise<void> {
    const { entries, access, registrations, runs, latestEntries, onPrepared } = this.#deps;
    const { ref, resourceVersion, finalizers, suspended } = entry;
    if (!finalizers.includes(teardownFinalizer)) {
      const patch = { metadata: { finalizers: [...finalizers, teardownFinalizer] } };
      await latestEntries.call(ref.uid, () => entries.patch(ref, 'metadata', patch, { resourceVersion, signal }));
    }
    const applicable = [...registrations.all()]
      .filter((registration) => isApplicable(entry, registration))
      .filter(({ name }) => !isAbandoned(entry, name));
    const producers = applicable.filter(({ kubeconfig }) => kubeconfig === 'produce').map(({ name }) => name);
    if (this.#prepared.get(ref.uid) === producers.join()) return;
    const hasRun = (component: string): boolean => runs.find({ entryUid: ref.uid, component }) !== undefined;
    // In one step, for components that start together. One that ran has its access.
    const isFirstStart = applicable.length > 0 && !suspended && !applicable.some(({ name }) => hasRun(name));
    if (isFirstStart || !producers.every(hasRun)) await access.prepare(entry, applicable, signal);
    this.#prepared.set(ref.uid, producers.join());
    onPrepared(ref.uid);
  }

  /** Withdraws access and removes the finalizer once no component has a record. */
  async #finalize(entry: Entry, signal: AbortSignal): Promise<boolean> {
    const { entries, access, loops } = this.#deps;
    const { ref, finalizers, resourceVersion } = entry;
    if (!loops() || this.#isRecorded(entry)) return false;
    if (!finalizers.includes(teardownFinalizer)) return true;
    await access.withdraw(ref, signal);
    const patch = { metadata: { finalizers: finalizers.filter((name) => name !== teardownFinalizer) } };
    await entries.patch(ref, 'metadata', patch, { resourceVersion, signal });
    return true;
  }

  #isRecorded({ ref }: Entry): boolean {
    const { loops, runs } = this.#deps;
    for (const { key } of loops()?.ofEntry(ref.uid) ?? []) if (runs.find(key)) return true;
    return false;
  }

  /** Returns the milliseconds until the fallback of unhealthy watches is due. */
  #watchRemotely(entry: Entry): number {
    const { registrations, remote, watchFallback, loops } = this.#deps;
    const { uid } = entry.ref;
    const withWatches = [...registrations.all()]
      .filter((registration) => registration.remoteWatches.length > 0 && isApplicable(entry, registration))
      .filter(({ name }) => !entry.disabled.has(name) && !isAbandoned(entry, name));
    if (withWatches.length > 0) {
      this.#watching.add(uid);
      remote.setWatches(
        entry,
        withWatches.map(({ name, remoteWatches }) => ({ component: name, watches: remoteWatches })),
      );
    } else if (this.#watching.delete(uid)) {
      remote.forget(uid);
    }
    if (loops() && remote.problem(uid) !== undefined)
      return watchFallback.triggerDue(uid, withWatches.filter(watchesManaged));
    watchFallback.forget(uid);
    return Number.POSITIVE_INFINITY;
  }

  /** At most once in `statusSpacingMs`, and not before all keys have their first events. */
  async #writeStatus(entry: Entry, signal: AbortSignal): Promise<Result> {
    const { entries, runs, status, abandonments, latestEntries, clock, loops } = this.#deps;
    const patch = loops() ? status.patch(entry) : undefined;
    if (!patch) return done;
    const { uid } = entry.ref;
    const waitMs = (this.#statusWrittenAt.get(uid) ?? Number.NEGATIVE_INFINITY) + statusSpacingMs - clock.monotonic();
    if (waitMs > 0) return after(waitMs);
    const { ref, resourceVersion } = entry;
    try {
      await latestEntries.call(uid, () => entries.patch(ref, 'status', patch, { resourceVersion, signal }));
    } catch (error) {
      if (!isConflict(error)) throw error;
      // The watch may lag behind the writes of outputs.
      const live = await latestEntries.call(uid, () => entries.get(entry.ref, signal));
      return after(live ? 0 : statusSpacingMs);
    }
    this.#statusWrittenAt.set(uid, clock.monotonic());
    const isRecorded = (component: string): boolean => runs.find({ entryUid: uid, component }) !== undefined;
    abandonments.statusWritten(entry, patch.status.components ?? [], isRecorded);
    return done;
  }

  /** This replica misses events until it leads again. */
  clear(): void {
    for (const uid of this.#watching) this.#deps.remote.forget(uid);
    const { latestEntries, watchFallback, abandonments } = this.#deps;
    for (const state of [
      this.#prepared,
      latestEntries,
      watchFallback,
      abandonments,
      this.#statusWrittenAt,
      this.#watching,
    ])
      state.clear();
  }

  #forget(uid: string): void {
    this.#prepared.delete(uid);
    this.#deps.latestEntries.forget(uid);
    this.#deps.abandonments.forget(uid);
    this.#statusWrittenAt.delete(uid);
    this.#deps.watchFallback.forget(uid);
    if (this.#watching.delete(uid)) this.#deps.remote.forget(uid);
  }
}

const watchesManaged = ({ remoteWatches }: Registration): boolean =>
  remoteWatches.some(({ cluster }) => cluster === 'managed');

interface WatchFallbackDeps {
  readonly loops: () => KeyLoops | undefined;
  readonly trigger: KeyEventSource['trigger'];
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Maximum milliseconds between starts with unhealthy watches, before jitter. */
const maxIntervalMs = 300_000;
/** Clusters often fail together; jitter spreads the runs. */
const jitter = 0.1;

/** Monotonic milliseconds. */
interface LastTrigger {
  readonly at: number;
  readonly periodMs: number;
}

/** Triggers components every five minutes while watches of their managed cluster may miss some. */
export class WatchFallback {
  readonly #deps: WatchFallbackDeps;
  readonly #lastTriggers = new Map<string, Map<string, LastTrigger>>();

  constructor(deps: WatchFallbackDeps) {
    this.#deps = deps;
  }

  /**
   * Triggers due components, except those with an interval of up to five minutes. The first call
   * starts the period. Returns the milliseconds until the next one.
   */
  triggerDue(entryUid: string, components: readonly Registration[]): number {
    const before = this.#lastTriggers.get(entryUid);
    const lastTriggers = new Map<string, LastTrigger>();
    this.#lastTriggers.set(entryUid, lastTriggers);
    let nextDueMs = Number.POSITIVE_INFINITY;
    for (const { name, intervalMs } of components) {
      if (intervalMs <= maxIntervalMs) continue;
      const key = { entryUid, component: name };
      let last = before?.get(name) ?? this.#newPeriod();
      if (this.#remainingMs(key, last) <= 0) {
        last = this.#newPeriod();
        this.#deps.trigger(key, trigger(triggerReasons.remote, { detail: 'unwatched', lane: lanes.time }));
      }
      lastTriggers.set(name, last);
      nextDueMs = Math.min(nextDueMs, this.#remainingMs(key, last));
    }
    return nextDueMs;
  }

  forget(entryUid: string): void {
    this.#lastTriggers.delete(entryUid);
  }

  clear(): void {
    this.#lastTriggers.clear();
  }

  #newPeriod(): LastTrigger {
    const { clock, random } = this.#deps;
    return { at: clock.monotonic(), periodMs: jittered(maxIntervalMs, jitter, random) };
  }

  /** Any start of the component postpones the fallback. */
  #remainingMs(key: ComponentKey, { at, periodMs }: LastTrigger): number {
    const { clock, loops } = this.#deps;
    const lastStart = loops()?.get(keyText(key))?.state.lastStart ?? Number.NEGATIVE_INFINITY;
    return Math.max(at, lastStart) + periodMs - clock.monotonic();
  }
}
