import { keyOf } from '../../api/object.ts';
import type { Clock } from '../../kit/clock.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, Store, StoreEvent } from '../../kube/store.ts';
import type { NotifiedRequest, NotifiedSession, NotifiedTemplate, NotifyStores } from '../stores.ts';
import { tellableMs } from './facts-of.ts';

export interface Gone<View> {
  readonly view: View;
  /** When this process saw the deletion, epoch ms. */
  readonly deletedAtMs: number;
}

const maxObjects = 1_000;
/** A new leader takes over in less. */
export const rememberedMs = 10 * 60_000;

/**
 * Deleted objects, in every replica, so that the next leader tells how a request or session ended
 * that was deleted before it led. What is deleted while no replica runs is not told; nor what only
 * the leader before saw being deleted, if it crashed at once.
 */
export class Remembered {
  readonly requests: GoneObjects<NotifiedRequest>;
  readonly sessions: GoneObjects<NotifiedSession>;
  /** By kind and `namespace/name`: their requests may outlive them. */
  readonly templates: GoneObjects<NotifiedTemplate>;

  constructor(stores: NotifyStores, clock: Clock) {
    const byUid = ({ uid }: Projected): string => uid;
    this.requests = new GoneObjects(stores.requests, clock, rememberedMs, byUid);
    this.sessions = new GoneObjects([stores.sessions], clock, rememberedMs, byUid);
    this.templates = new GoneObjects(stores.templates, clock, tellableMs, ({ key }, { resource }) =>
      keyOf({ namespace: resource.kind, name: key }),
    );
  }
}

class GoneObjects<View extends Projected> {
  readonly #gone = new RecentMap<string, Gone<View>>(maxObjects);
  readonly #clock: Clock;
  readonly #keptMs: number;

  constructor(
    stores: readonly Store<View>[],
    clock: Clock,
    keptMs: number,
    keyOfView: (view: View, store: Store<View>) => string,
  ) {
    this.#clock = clock;
    this.#keptMs = keptMs;
    for (const store of stores) {
      store.subscribe((event: StoreEvent<View>) => {
        const view = event.type === 'deleted' ? event.before : event.now;
        if (event.type === 'deleted') this.#gone.set(keyOfView(view, store), { view, deletedAtMs: clock.now() });
        else this.#gone.delete(keyOfView(view, store));
      });
    }
  }

  get(key: string): Gone<View> | undefined {
    const gone = this.#gone.get(key);
    if (!gone || this.#clock.now() - gone.deletedAtMs < this.#keptMs) return gone;
    this.#gone.delete(key);
    return undefined;
  }

  keys(): string[] {
    return [...this.#gone.keys()].filter((key) => this.get(key) !== undefined);
  }
}
