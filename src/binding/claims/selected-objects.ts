import { ownerLabel } from '../../api/binding/names.ts';
import type { Resource } from '../../api/object.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { StoreFailure, StoreHandle } from '../../kube/store.ts';
import { byName, byNamespace, type ClaimedView, claimedIndexes, claimedView } from './claimed-view.ts';
import { Deletions } from './deletions.ts';

/**
 * The consumer's objects of one claimed kind. Without `watchSelector`, one watch shows all objects. With it, two watches suffice: one with
 * that selector, and one of objects with the owner label. The second watch shows the deletion of an original that is no longer selected,
 * whose copy must also be deleted.
 */
export class SelectedObjects {
  /** One or two watches. An object may be in both. */
  readonly #handles: readonly StoreHandle<ClaimedView>[];
  readonly deletions = new Deletions();
  readonly #unsubscribes: readonly (() => void)[];

  constructor(cluster: Cluster, resource: Resource, watchSelector: string | undefined) {
    const spec = { resource, project: claimedView, indexes: claimedIndexes };
    this.#handles =
      watchSelector === undefined
        ? [cluster.watch(spec)]
        : [watchSelector, ownerLabel].map((labelSelector) => cluster.watch({ ...spec, labelSelector }));
    this.#unsubscribes = this.#handles.map(({ store }) =>
      store.subscribe((event) => this.deletions.observe(event.key, event)),
    );
  }

  /** Number of objects with an owner label: synced originals, and copies. */
  get labelled(): number {
    return [...new Set(this.keys())].filter((key) => this.get(key)?.owner !== undefined).length;
  }

  get synced(): boolean {
    return this.#handles.every(({ store }) => store.synced);
  }

  /** Rejects if a watch is closed first. */
  async whenSynced(): Promise<void> {
    await Promise.all(this.#handles.map(({ store }) => store.whenSynced()));
  }

  /** The object; undefined if no watch shows it. If both watches show it, the object with the newer resourceVersion. */
  get(key: string): ClaimedView | undefined {
    let newest: ClaimedView | undefined;
    for (const { store } of this.#handles) {
      const found = store.get(key);
      if (found && (!newest || isOlder(newest.resourceVersion, found.resourceVersion))) newest = found;
    }
    return newest;
  }

  /** All keys. Yields the key of an object in both watches twice; so do `keysIn` and `keysNamed`. */
  *keys(): Iterable<string> {
    for (const { store } of this.#handles) for (const { key } of store.list()) yield key;
  }

  keysIn(namespace: string): string[] {
    return this.#keysBy(byNamespace, namespace);
  }

  keysNamed(name: string): string[] {
    return this.#keysBy(byName, name);
  }

  /** One source for each watch. Each calls `onEvent` with the key of every event before it enqueues the key. */
  sources(onEvent: (key: string) => void): Source[] {
    return this.#handles.map(({ store }, i) =>
      fromSubscription(i === 0 ? 'consumer' : 'consumer-owned', store, ({ key }) => {
        onEvent(key);
        return [key];
      }),
    );
  }

  /** Highest `Store.ageMs` of the watches, milliseconds. */
  get ageMs(): number {
    return Math.max(...this.#handles.map(({ store }) => store.ageMs));
  }

  /** The failure of a refused watch; if no watch is refused, that of any watch; undefined if no watch fails. */
  get failing(): StoreFailure | undefined {
    const failures = this.#handles.flatMap(({ store }) => store.failing ?? []);
    return failures.find(({ refused }) => refused !== undefined) ?? failures[0];
  }

  /** As `Store.onRefusal`. */
  onRefusal(listener: () => void): () => void {
    const unsubscribes = this.#handles.map(({ store }) => store.onRefusal(listener));
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    for (const handle of this.#handles) handle.release();
  }

  #keysBy(index: string, value: string): string[] {
    return this.#handles.flatMap(({ store }) => store.byIndex(index, value).map(({ key }) => key));
  }
}
