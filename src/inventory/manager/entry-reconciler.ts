import { teardownFinalizer } from '../../api/inventory/names.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import { jittered } from '../../kit/backoff.ts';
import type { Clock } from '../../kit/clock.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { WriteThroughCache } from '../../kube/write-through-cache.ts';
import { lanes, trigger, triggerReasons } from '../core/triggers.ts';
import type { Entry } from '../entry.ts';
import { type ComponentKey, keyText } from '../key.ts';
import type { EntryAccess, InventoryStore, RemoteEvents, RunStore } from '../ports.ts';
import type { Registration } from '../registration.ts';
import { isFor } from './entry-snapshot.ts';
import type { EntryStatus } from './entry-status.ts';
import type { KeyEventSource } from './key-event-source.ts';
import type { KeyLoops } from './key-loop.ts';
import type { Registry } from './registrations.ts';

interface EntryReconcilerDeps {
  readonly entries: InventoryStore;
  readonly runs: RunStore;
  readonly registry: Registry;
  readonly access: EntryAccess;
  readonly remote: RemoteEvents;
  readonly status: EntryStatus;
  readonly newest: WriteThroughCache<Entry>;
  readonly watchFallback: WatchFallback;
  readonly loops: () => KeyLoops | undefined;
  readonly clock: Clock;
  /** Its components may run from now on. */
  readonly onPrepared: (entryUid: string) => void;
}

/** Between two writes of one status, milliseconds. */
const statusSpacingMs = 250;

/** Looks after an entry as a whole: what it needs before its first run, its status, and its end. */
export class EntryReconciler implements Reconciler {
  readonly #deps: EntryReconcilerDeps;
  /** By uid, the producers of kubeconfigs that it was prepared for. */
  readonly #prepared = new Map<string, string>();
  readonly #watching = new Set<string>();
  /** When its status was last written, monotonic milliseconds. */
  readonly #statusWrittenAt = new Map<string, number>();

  constructor(deps: EntryReconcilerDeps) {
    this.#deps = deps;
  }

  isPrepared(entryUid: string): boolean {
    return this.#prepared.has(entryUid) || this.#deps.entries.find(entryUid)?.deleting === true;
  }

  /** Whether something in other clusters is watched for it. */
  isWatching(entryUid: string): boolean {
    return this.#watching.has(entryUid);
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<Result> {
    const watched = this.#deps.entries.find(uid);
    if (!watched) {
      this.#forget(uid);
      return done;
    }
    const { newest } = this.#deps;
    try {
      const entry = newest.get(uid) ?? watched;
      if (entry.deleting) {
        if (await this.#finalize(entry, signal)) return done;
      } else {
        await this.#prepare(entry, signal);
      }
      const fallbackInMs = this.#watchRemotely(entry);
      const result = await this.#writeStatus(newest.get(uid) ?? entry, signal);
      return result.kind === 'done' && fallbackInMs !== Number.POSITIVE_INFINITY ? after(fallbackInMs) : result;
    } catch (error) {
      // Gone meanwhile: the watch will tell.
      if (isNotFound(error)) return done;
      throw error;
    }
  }

  async #prepare(entry: Entry, signal: AbortSignal): Promise<void> {
    const { entries, access, registry, runs, newest, onPrepared } = this.#deps;
    const { ref, resourceVersion, finalizers, suspended } = entry;
    if (!finalizers.includes(teardownFinalizer)) {
      const patch = { metadata: { finalizers: [...finalizers, teardownFinalizer] } };
      await newest.call(ref.uid, () => entries.patch(ref, 'metadata', patch, { resourceVersion, signal }));
    }
    const registrations = [...registry.all()].filter((registration) => isFor(entry, registration));
    const producers = registrations.filter(({ kubeconfig }) => kubeconfig === 'produce').map(({ name }) => name);
    if (this.#prepared.get(ref.uid) === producers.join()) return;
    const hasRun = (component: string): boolean => runs.find({ entryUid: ref.uid, component }) !== undefined;
    // What has run was prepared then. All that starts at once is given its access in one go.
    const starts = registrations.length > 0 && !suspended && !registrations.some(({ name }) => hasRun(name));
    if (starts || !producers.every(hasRun)) await access.prepare(entry, registrations, signal);
    this.#prepared.set(ref.uid, producers.join());
    onPrepared(ref.uid);
  }

  /** True once nothing is left of it. */
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

  /** Milliseconds until it has to be looked at again; Infinity: not for this. */
  #watchRemotely(entry: Entry): number {
    const { registry, remote, watchFallback, loops } = this.#deps;
    const { uid } = entry.ref;
    const watching = [...registry.all()]
      .filter((registration) => registration.remoteWatches.length > 0 && isFor(entry, registration))
      .filter(({ name }) => !entry.disabled.has(name));
    if (watching.length > 0) {
      this.#watching.add(uid);
      remote.setWatches(
        entry,
        watching.map(({ name, remoteWatches }) => ({ component: name, watches: remoteWatches })),
      );
    } else if (this.#watching.delete(uid)) {
      remote.forget(uid);
    }
    if (loops() && remote.problem(uid) !== undefined) return watchFallback.triggerDue(uid, watching.filter(hasManaged));
    watchFallback.forget(uid);
    return Number.POSITIVE_INFINITY;
  }

  /** The first change at once, those after it together. */
  async #writeStatus(entry: Entry, signal: AbortSignal): Promise<Result> {
    const { entries, status, newest, clock, loops } = this.#deps;
    const patch = loops() ? status.patch(entry) : undefined;
    if (!patch) return done;
    const { uid } = entry.ref;
    const waitMs = (this.#statusWrittenAt.get(uid) ?? Number.NEGATIVE_INFINITY) + statusSpacingMs - clock.monotonic();
    if (waitMs > 0) return after(waitMs);
    // A list is written as a whole: of the conditions some are of others, who may have written one that is not seen yet.
    const { resourceVersion } = entry;
    const options = 'conditions' in patch.status ? { resourceVersion, signal } : { signal };
    try {
      await newest.call(uid, () => entries.patch(entry.ref, 'status', patch, options));
    } catch (error) {
      if (!isConflict(error)) throw error;
      // The watch may be far behind those who write outputs.
      const live = await newest.call(uid, () => entries.get(entry.ref, signal));
      return after(live ? 0 : statusSpacingMs);
    }
    this.#statusWrittenAt.set(uid, clock.monotonic());
    return done;
  }

  /** For whoever leads next: nothing that happens until then is noticed here. */
  clear(): void {
    for (const uid of this.#watching) this.#deps.remote.forget(uid);
    const { newest, watchFallback } = this.#deps;
    for (const known of [this.#prepared, newest, watchFallback, this.#statusWrittenAt, this.#watching]) known.clear();
  }

  #forget(uid: string): void {
    this.#prepared.delete(uid);
    this.#deps.newest.forget(uid);
    this.#statusWrittenAt.delete(uid);
    this.#deps.watchFallback.forget(uid);
    if (this.#watching.delete(uid)) this.#deps.remote.forget(uid);
  }
}

const hasManaged = ({ remoteWatches }: Registration): boolean =>
  remoteWatches.some(({ cluster }) => cluster === 'managed');

interface WatchFallbackDeps {
  readonly loops: () => KeyLoops | undefined;
  readonly trigger: KeyEventSource['trigger'];
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** A component whose watches are not to be relied on runs at least as often as this, milliseconds. */
const maxIntervalMs = 300_000;
/** Clusters get lost together; their components need not come together. */
const jitter = 0.1;

/** When a component was last asked because of this, monotonic, and how long after that it is again; milliseconds. */
interface LastTrigger {
  readonly at: number;
  readonly periodMs: number;
}

/** What the watches of other clusters do not tell while they are down is found out by running more often. */
export class WatchFallback {
  readonly #deps: WatchFallbackDeps;
  /** By entry and component. */
  readonly #lastTriggers = new Map<string, Map<string, LastTrigger>>();

  constructor(deps: WatchFallbackDeps) {
    this.#deps = deps;
  }

  /** Of an entry whose watches are down: triggers the components whose time it is. Milliseconds until the next one's; Infinity: none. */
  triggerDue(entryUid: string, components: readonly Registration[]): number {
    const before = this.#lastTriggers.get(entryUid);
    const triggered = new Map<string, LastTrigger>();
    this.#lastTriggers.set(entryUid, triggered);
    let leftMs = Number.POSITIVE_INFINITY;
    for (const { name, intervalMs } of components) {
      if (intervalMs <= maxIntervalMs) continue;
      const key = { entryUid, component: name };
      let last = before?.get(name) ?? this.#now();
      if (this.#leftMs(key, last) <= 0) {
        last = this.#now();
        this.#deps.trigger(key, trigger(triggerReasons.remote, { about: 'unwatched', lane: lanes.time }));
      }
      triggered.set(name, last);
      leftMs = Math.min(leftMs, this.#leftMs(key, last));
    }
    return leftMs;
  }

  /** Its watches are fine, or it is gone. */
  forget(entryUid: string): void {
    this.#lastTriggers.delete(entryUid);
  }

  clear(): void {
    this.#lastTriggers.clear();
  }

  #now(): LastTrigger {
    const { clock, random } = this.#deps;
    return { at: clock.monotonic(), periodMs: jittered(maxIntervalMs, jitter, random) };
  }

  /** Any start counts, whatever it was for. */
  #leftMs(key: ComponentKey, { at, periodMs }: LastTrigger): number {
    const { clock, loops } = this.#deps;
    const lastStart = loops()?.get(keyText(key))?.state.lastStart ?? Number.NEGATIVE_INFINITY;
    return Math.max(at, lastStart) + periodMs - clock.monotonic();
  }
}
