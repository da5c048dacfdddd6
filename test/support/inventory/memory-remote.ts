import type { Entry } from '../../../src/inventory/entry.ts';
import type { ComponentWatches, RemoteEvent, RemoteEvents } from '../../../src/inventory/ports.ts';

/** Watches of other clusters, in the hands of a test: it says what they saw and what is the matter with them. */
export class MemoryRemote implements RemoteEvents {
  /** By uid. */
  readonly wanted = new Map<string, readonly ComponentWatches[]>();
  readonly #problems = new Map<string, string>();
  readonly #listeners = new Set<(event: RemoteEvent) => void>();
  readonly #healthListeners = new Set<(entryUid: string) => void>();

  setWatches({ ref }: Entry, wanted: readonly ComponentWatches[]): void {
    this.wanted.set(ref.uid, wanted);
  }

  forget(entryUid: string): void {
    this.wanted.delete(entryUid);
  }

  subscribe(listener: (event: RemoteEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  problem(entryUid: string): string | undefined {
    return this.#problems.get(entryUid);
  }

  onHealth(listener: (entryUid: string) => void): () => void {
    this.#healthListeners.add(listener);
    return () => void this.#healthListeners.delete(listener);
  }

  async close(): Promise<void> {}

  /** Something that is watched has changed. */
  event(event: RemoteEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  /** Undefined: all is well. */
  health(entryUid: string, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(entryUid);
    else this.#problems.set(entryUid, problem);
    for (const listener of [...this.#healthListeners]) listener(entryUid);
  }
}
