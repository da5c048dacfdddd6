import { teardownFinalizer } from '../../api/inventory/names.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import { isApplicable } from '../core/facts.ts';
import { type Entry, isAbandoned } from '../entry.ts';
import type { EntryAccess, InventoryStore, RemoteWatcher, RunStore } from '../ports.ts';
import type { AbandonmentReporter } from './abandonments.ts';
import type { EntryStatus } from './entry-status.ts';
import type { Memories } from './memories.ts';
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
  /** Undefined until this replica leads. */
  readonly memories: () => Memories | undefined;
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
      this.#watchRemotely(entry);
      return await this.#writeStatus(latestEntries.get(uid) ?? entry, signal);
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
    const { entries, access, memories } = this.#deps;
    const { ref, finalizers, resourceVersion } = entry;
    if (!memories() || this.#isRecorded(entry)) return false;
    if (!finalizers.includes(teardownFinalizer)) return true;
    await access.withdraw(ref, signal);
    const patch = { metadata: { finalizers: finalizers.filter((name) => name !== teardownFinalizer) } };
    await entries.patch(ref, 'metadata', patch, { resourceVersion, signal });
    return true;
  }

  #isRecorded({ ref }: Entry): boolean {
    const { memories, runs } = this.#deps;
    for (const { key } of memories()?.ofEntry(ref.uid) ?? []) if (runs.find(key)) return true;
    return false;
  }

  #watchRemotely(entry: Entry): void {
    const { registrations, remote } = this.#deps;
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
  }

  /** At most once in `statusSpacingMs`. */
  async #writeStatus(entry: Entry, signal: AbortSignal): Promise<Result> {
    const { entries, runs, status, abandonments, latestEntries, clock, memories } = this.#deps;
    const patch = memories() ? status.patch(entry) : undefined;
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
    const { latestEntries, abandonments } = this.#deps;
    for (const state of [this.#prepared, latestEntries, abandonments, this.#statusWrittenAt, this.#watching])
      state.clear();
  }

  #forget(uid: string): void {
    this.#prepared.delete(uid);
    this.#deps.latestEntries.forget(uid);
    this.#deps.abandonments.forget(uid);
    this.#statusWrittenAt.delete(uid);
    if (this.#watching.delete(uid)) this.#deps.remote.forget(uid);
  }
}
