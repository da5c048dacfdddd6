import { ownerLabel } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { WatchSet } from '../stores/watch-set.ts';
import { byName, byNamespace, type ClaimedView, claimedIndexes, claimedView } from './claimed-view.ts';
import { Deletions } from './deletions.ts';

/**
 * The consumer's objects of one claimed kind. With `watchSelector`, a second watch shows owned
 * objects: when one that is no longer selected is deleted, its copy must go, too.
 */
export class SelectedObjects extends WatchSet<ClaimedView> {
  readonly deletions = new Deletions();

  constructor(cluster: Cluster, resource: Resource, watchSelector: string | undefined) {
    super(cluster, { resource, project: claimedView, indexes: claimedIndexes });
    this.subscribe((event) => this.deletions.observe(event.key, event));
    if (watchSelector === undefined) this.begin('all');
    else for (const labelSelector of [watchSelector, ownerLabel]) this.begin(labelSelector, { labelSelector });
  }

  /** Synced originals, and copies. */
  get labelled(): number {
    return [...new Set(this.keys())].filter((key) => this.get(key)?.owner !== undefined).length;
  }

  /** Rejects if a watch is closed first. */
  async whenSynced(signal?: AbortSignal): Promise<void> {
    await Promise.all(this.stores.map((store) => store.whenSynced(signal)));
  }

  *keys(): Iterable<string> {
    for (const { key } of this.list()) yield key;
  }

  keysIn(namespace: string): string[] {
    return this.byIndex(byNamespace, namespace).map(({ key }) => key);
  }

  keysNamed(name: string): string[] {
    return this.byIndex(byName, name).map(({ key }) => key);
  }

  /** Calls `onEvent` before it enqueues a key. */
  source(onEvent: (key: string) => void): Source {
    return fromSubscription('consumer', this, ({ key }) => {
      onEvent(key);
      return [key];
    });
  }
}
