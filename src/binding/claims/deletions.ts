import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { KnownDeletion } from './plan.ts';

/** Maximum number of remembered deletions of one side. A forgotten deletion counts as not observed. */
const maxDeletions = 10_000;

/** The deletions of one side, by key. Each stays while a copy may have to be deleted for it. */
export class Deletions {
  readonly #deletions = new RecentMap<string, KnownDeletion>(maxDeletions);

  /** Call with every event of the side. */
  observe(key: string, event: StoreEvent<Projected>): void {
    if (event.type !== 'deleted') return;
    this.#deletions.set(key, { uid: event.before.uid, wasObserved: event.inferred !== true });
  }

  /** The last deletion under the key; undefined if none is remembered. */
  get(key: string): KnownDeletion | undefined {
    return this.#deletions.get(key);
  }

  /** Forgets the deletion unless the deleted object had this uid. `uid`: of the original that the copy names; undefined without a copy. */
  retain(key: string, uid: string | undefined): void {
    if (this.#deletions.get(key)?.uid !== uid) this.#deletions.delete(key);
  }
}
