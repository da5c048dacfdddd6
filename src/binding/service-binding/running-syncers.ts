import { Listeners } from '../../kit/listeners.ts';
import type { RefusedWatch, Syncer, SyncMode } from '../sync-engine/syncer.ts';

export interface RunningSyncer {
  readonly binding: string;
  /** The CRD whose objects it syncs; undefined for claimed objects. */
  readonly crd: string | undefined;
  readonly mode: SyncMode;
  readonly syncer: Syncer;
}

/** By binding, in any session. Export controllers change them; the binding controller reads. */
export class RunningSyncers {
  readonly #running = new Map<string, Set<RunningSyncer>>();
  readonly #listeners = new Listeners<string>();

  isSyncing(binding: string, crd: string, mode?: SyncMode): boolean {
    return this.#syncersOf(binding).some(
      (running) => running.crd === crd && (mode === undefined || running.mode === mode),
    );
  }

  /** A syncer of the definition has listed its objects, or has no version to sync. */
  isServed(binding: string, crd: string): boolean {
    return this.#syncersOf(binding).some((running) => running.crd === crd && running.syncer.served());
  }

  /** In the order of `Syncer.problems`, syncer by syncer. */
  problemsOf(binding: string): readonly string[] {
    return this.#syncersOf(binding).flatMap(({ syncer }) => syncer.problems());
  }

  refusedWatchesOf(binding: string): readonly RefusedWatch[] {
    return this.#syncersOf(binding).flatMap(({ syncer }) => syncer.refusedWatches());
  }

  /** Infinity while a syncer does not know it. */
  remainingOf(binding: string): number {
    return this.#syncersOf(binding).reduce((sum, { syncer }) => sum + syncer.remaining(), 0);
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

  notifyChanged(binding: string): void {
    this.#listeners.notify(binding);
  }

  /** Calls back with each binding whose syncers may have changed. */
  subscribe(listener: (binding: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  #syncersOf(binding: string): RunningSyncer[] {
    return [...(this.#running.get(binding) ?? [])];
  }
}
