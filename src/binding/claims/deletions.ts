import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { Deletion } from './plan.ts';

/** So many are remembered. Of one that is forgotten it takes a proof, or a question, that its copy may go. */
const maxDeletions = 10_000;

/** The objects that went, by key, for as long as a copy may have to follow them. */
export class Deletions {
  readonly #gone = new RecentMap<string, Deletion>(maxDeletions);

  observe(key: string, event: StoreEvent<Projected>): void {
    if (event.type !== 'deleted') return;
    this.#gone.set(key, { uid: event.before.uid, wasObserved: event.inferred !== true });
  }

  get(key: string): Deletion | undefined {
    return this.#gone.get(key);
  }

  /** The copy that is left tells of `uid`; what else went need not be remembered. */
  retain(key: string, uid: string | undefined): void {
    if (this.#gone.get(key)?.uid !== uid) this.#gone.delete(key);
  }
}
