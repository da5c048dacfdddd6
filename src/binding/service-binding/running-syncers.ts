import type { Syncer } from '../sync/syncer.ts';

/** A syncer, or what syncs claimed objects, which hold nothing up. */
export type Work = Omit<Syncer, 'held'> & Partial<Pick<Syncer, 'held'>>;

/** One of them at work. */
export interface RunningSyncer {
  readonly binding: string;
  /** The CustomResourceDefinition whose objects it keeps in step; undefined for what is claimed. */
  readonly crd: string | undefined;
  readonly syncer: Work;
}

/** What works on the objects of each binding now, in whichever session: the controllers of exports tell, that of bindings asks. */
export class RunningSyncers {
  readonly #running = new Map<string, Set<RunningSyncer>>();
  readonly #listeners = new Set<(binding: string) => void>();
  /** What `problemsOf` each binding came to when it was last looked for changes. */
  readonly #seen = new Map<string, string>();

  /** Whether anything is at work for a binding, or on the objects of one definition. */
  isSyncing(binding: string, crd?: string): boolean {
    return this.#of(binding).some((running) => crd === undefined || running.crd === crd);
  }

  /** Worst first, each syncer's in turn. */
  problemsOf(binding: string): readonly string[] {
    return this.#of(binding).flatMap(({ syncer }) => syncer.problems());
  }

  /** How many objects wait for their copies to go. */
  heldOf(binding: string): number {
    return this.#of(binding).reduce((held, { syncer }) => held + (syncer.held?.() ?? 0), 0);
  }

  add(running: RunningSyncer): void {
    const { binding } = running;
    this.#running.set(binding, (this.#running.get(binding) ?? new Set()).add(running));
    this.#tell(binding);
  }

  delete(running: RunningSyncer): void {
    const { binding } = running;
    const left = this.#running.get(binding);
    if (!left?.delete(running)) return;
    if (left.size === 0) this.#running.delete(binding);
    this.#tell(binding);
  }

  /** Calls back with a binding whose syncers have become more or fewer; returns the unsubscribe. */
  subscribe(listener: (binding: string) => void): () => void {
    const own = (binding: string): void => listener(binding);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** The bindings whose problems have changed since this was asked last; nobody tells of a problem. */
  changed(): string[] {
    return [...new Set([...this.#running.keys(), ...this.#seen.keys()])].filter((binding) => {
      const now = this.problemsOf(binding).join('\n');
      if (now === (this.#seen.get(binding) ?? '')) return false;
      if (now === '') this.#seen.delete(binding);
      else this.#seen.set(binding, now);
      return true;
    });
  }

  #of(binding: string): RunningSyncer[] {
    return [...(this.#running.get(binding) ?? [])];
  }

  #tell(binding: string): void {
    for (const listener of [...this.#listeners]) listener(binding);
  }
}
