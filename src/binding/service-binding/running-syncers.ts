import type { Syncer, SyncMode } from '../sync-engine/kind.ts';

/** A syncer, or what syncs claimed objects, which hold nothing up. */
export type ObjectSyncer = Pick<Syncer, 'controllers' | 'resync' | 'problems' | 'close'> &
  Partial<Pick<Syncer, 'remaining' | 'allowDeletes' | 'served'>>;

/** A syncer that runs. */
export interface RunningSyncer {
  readonly binding: string;
  /** The CustomResourceDefinition whose objects it keeps in step; undefined for what is claimed. */
  readonly crd: string | undefined;
  readonly mode: SyncMode;
  readonly syncer: ObjectSyncer;
}

/** What works on the objects of each binding now, in whichever session: the controllers of exports tell, that of bindings asks. */
export class RunningSyncers {
  readonly #running = new Map<string, Set<RunningSyncer>>();
  readonly #listeners = new Set<(binding: string) => void>();

  /** Whether anything works on the objects of a definition; with `mode`, whether it does that. */
  isSyncing(binding: string, crd: string, mode?: SyncMode): boolean {
    return this.#of(binding).some((one) => one.crd === crd && (mode === undefined || one.mode === mode));
  }

  /** Whether the API server serves what a definition defines, as far as anything works on its objects. */
  isServed(binding: string, crd: string): boolean {
    return this.#of(binding).some((one) => one.crd === crd && one.syncer.served?.());
  }

  /** Worst first, each syncer's in turn. */
  problemsOf(binding: string): readonly string[] {
    return this.#of(binding).flatMap(({ syncer }) => syncer.problems());
  }

  /** How many objects wait for their copies to go; Infinity while that is not known. */
  remainingOf(binding: string): number {
    return this.#of(binding).reduce((held, { syncer }) => held + (syncer.remaining?.() ?? 0), 0);
  }

  add(running: RunningSyncer): void {
    const { binding } = running;
    this.#running.set(binding, (this.#running.get(binding) ?? new Set()).add(running));
    this.changed(binding);
  }

  delete(running: RunningSyncer): void {
    const { binding } = running;
    const left = this.#running.get(binding);
    if (!left?.delete(running)) return;
    if (left.size === 0) this.#running.delete(binding);
    this.changed(binding);
  }

  /** What is asked of a binding here may be answered differently from now on. */
  changed(binding: string): void {
    for (const listener of [...this.#listeners]) listener(binding);
  }

  /** Calls back with each binding of which something has changed; returns the unsubscribe. */
  subscribe(listener: (binding: string) => void): () => void {
    const own = (binding: string): void => listener(binding);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  #of(binding: string): RunningSyncer[] {
    return [...(this.#running.get(binding) ?? [])];
  }
}
