import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, StoreEvent } from '../../kube/store.ts';
import type { Gone } from './plan.ts';

/** So many are remembered. Of one that is forgotten it takes a proof, or a question, that its copy may go. */
const most = 10_000;

/** The objects that went, by key, for as long as a copy may have to follow them. */
export class Deletions {
  readonly #gone = new RecentMap<string, Gone>(most);

  observe(key: string, event: StoreEvent<Projected>): void {
    if (event.type !== 'deleted') return;
    this.#gone.set(key, { uid: event.before.uid, wasSeen: event.inferred !== true });
  }

  get(key: string): Gone | undefined {
    return this.#gone.get(key);
  }

  /** The copy that is left tells of `uid`; what else went need not be remembered. */
  keepOnly(key: string, uid: string | undefined): void {
    if (this.#gone.get(key)?.uid !== uid) this.#gone.delete(key);
  }
}
