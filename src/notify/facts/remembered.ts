import type { Clock } from '../../kit/clock.ts';
import { RecentMap } from '../../kit/recent-map.ts';
import type { Projected, Store } from '../../kube/store.ts';

interface Gone<View> {
  readonly view: View;
  /** When this process saw the deletion, epoch ms. */
  readonly deletedAtMs: number;
}

const maxObjects = 1_000;

/**
 * The objects that were deleted last, in every replica, so that the next leader tells how a request
 * or session ended that was deleted before it led. Not what only the leader before saw being
 * deleted, if it crashed at once.
 */
export function rememberDeleted<View extends Projected>(
  stores: readonly Store<View>[],
  clock: Clock,
  keyOf: (view: View, store: Store<View>) => string,
): ReadonlyMap<string, Gone<View>> {
  const gone = new RecentMap<string, Gone<View>>(maxObjects);
  for (const store of stores) {
    store.subscribe((event) => {
      if (event.type !== 'deleted') gone.delete(keyOf(event.now, store));
      else gone.set(keyOf(event.before, store), { view: event.before, deletedAtMs: clock.now() });
    });
  }
  return gone;
}
