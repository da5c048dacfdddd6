import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { Deletion } from './plan.ts';

/** Most deletions that are remembered. A forgotten deletion counts as not observed. */
const maxDeletions = 10_000;

/** The deletions of one side, by key. They are kept while a copy may have to be deleted. */
export class Deletions {
  readonly #deletions = new RecentMap<string, Deletion>(maxDeletions);

  observe(key: string, event: StoreEvent<Projected>): void {
    if (event.type !== 'deleted') return;
    this.#deletions.set(key, { uid: event.before.uid, wasObserved: event.inferred !== true });
  }

  get(key: string): Deletion | undefined {
    return this.#deletions.get(key);
  }

  /** Keeps the deletion only if the remaining copy names its uid. */
  retain(key: string, uid: string | undefined): void {
    if (this.#deletions.get(key)?.uid !== uid) this.#deletions.delete(key);
  }
}
