import type { RefusedWatch, Syncer, SyncMode } from '../sync-engine/syncer.ts';

/** A syncer of bound objects, or of the claimed objects of one export. */
export type ObjectSyncer = Pick<Syncer, 'controllers' | 'resync' | 'problems' | 'close'> &
  Partial<Pick<Syncer, 'refusedWatches' | 'remaining' | 'allowDeletes' | 'served'>>;

/** A running syncer. */
export interface RunningSyncer {
  readonly binding: string;
  /** Name of the CustomResourceDefinition whose objects it syncs; undefined for claimed objects. */
  readonly crd: string | undefined;
  readonly mode: SyncMode;
  readonly syncer: ObjectSyncer;
}

/** The running syncers of each binding, in any session. Export controllers add and remove them; the binding controller reads them. */
export class RunningSyncers {
  readonly #running = new Map<string, Set<RunningSyncer>>();
  readonly #listeners = new Set<(binding: string) => void>();

  /** Whether a syncer runs for the objects of a definition; with `mode`, whether one runs in that mode. */
  isSyncing(binding: string, crd: string, mode?: SyncMode): boolean {
    return this.#syncersOf(binding).some(
      (running) => running.crd === crd && (mode === undefined || running.mode === mode),
    );
  }

  /** Whether a running syncer of the definition has listed its objects, or has no version to sync. */
  isServed(binding: string, crd: string): boolean {
    return this.#syncersOf(binding).some((running) => running.crd === crd && running.syncer.served?.());
  }

  /** The problems of all syncers, one syncer after the other, each in the order of `Syncer.problems`. */
  problemsOf(binding: string): readonly string[] {
    return this.#syncersOf(binding).flatMap(({ syncer }) => syncer.problems());
  }

  /** The refused watches of all syncers. */
  refusedWatchesOf(binding: string): readonly RefusedWatch[] {
    return this.#syncersOf(binding).flatMap(({ syncer }) => syncer.refusedWatches?.() ?? []);
  }

  /** Sum of `remaining` of all syncers; Infinity while one of them does not know it. */
  remainingOf(binding: string): number {
    return this.#syncersOf(binding).reduce((sum, { syncer }) => sum + (syncer.remaining?.() ?? 0), 0);
  }

  add(running: RunningSyncer): void {
    const { binding } = running;
    this.#running.set(binding, (this.#running.get(binding) ?? new Set()).add(running));
    this.notifyChanged(binding);
  }

  delete(running: RunningSyncer): void {
    const { binding } = running;
    const bindingSyncers = this.#running.get(binding);
    if (!bindingSyncers?.delete(running)) return;
    if (bindingSyncers.size === 0) this.#running.delete(binding);
    this.notifyChanged(binding);
  }

  /** Notifies the listeners that the state of a binding's syncers may have changed. */
  notifyChanged(binding: string): void {
    for (const listener of [...this.#listeners]) listener(binding);
  }

  /** Calls `listener` with each binding whose syncers may have changed. Returns a function that unsubscribes. */
  subscribe(listener: (binding: string) => void): () => void {
    const subscription = (binding: string): void => listener(binding);
    this.#listeners.add(subscription);
    return () => void this.#listeners.delete(subscription);
  }

  #syncersOf(binding: string): RunningSyncer[] {
    return [...(this.#running.get(binding) ?? [])];
  }
}
