import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { KnownDeletion } from './plan.ts';

/** Remembered for one side. A forgotten deletion counts as not observed. */
const maxDeletions = 10_000;

/** Of one side, by key. Each stays while a copy may have to be deleted for it. */
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

  /** Forgets the deletion unless it was of the original with this uid, which the copy names. */
  retain(key: string, uid: string | undefined): void {
    if (this.#deletions.get(key)?.uid !== uid) this.#deletions.delete(key);
  }
}
