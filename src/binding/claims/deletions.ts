import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { KnownDeletion } from './plan.ts';

/** Maximum number of deletions that it remembers. A forgotten deletion counts as not observed. */
const maxDeletions = 10_000;

/** The deletions of one side, by key. It keeps each while a copy may have to be deleted. */
export class Deletions {
  readonly #deletions = new RecentMap<string, KnownDeletion>(maxDeletions);

  /** Call with every event of the side. */
  observe(key: string, event: StoreEvent<Projected>): void {
    if (event.type !== 'deleted') return;
    this.#deletions.set(key, { uid: event.before.uid, wasObserved: event.inferred !== true });
  }

  get(key: string): KnownDeletion | undefined {
    return this.#deletions.get(key);
  }

  /** Keeps the deletion only if the remaining copy names its uid. */
  retain(key: string, uid: string | undefined): void {
    if (this.#deletions.get(key)?.uid !== uid) this.#deletions.delete(key);
  }
}
