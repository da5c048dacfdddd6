import type { Entry } from '../../../src/inventory/entry.ts';
import type { ComponentWatches, RemoteEvent, RemoteWatcher } from '../../../src/inventory/ports.ts';

/** Remote watches that a test controls: it emits their events and sets their health. */
export class MemoryRemote implements RemoteWatcher {
  /** By entry UID. */
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

  /** Emits a change of a watched object. */
  event(event: RemoteEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  /** Sets the health of an entry's watches; undefined means healthy. */
  health(entryUid: string, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(entryUid);
    else this.#problems.set(entryUid, problem);
    for (const listener of [...this.#healthListeners]) listener(entryUid);
  }
}
