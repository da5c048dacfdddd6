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
 * The consumer's objects of one claimed kind. With `watchSelector`, a second watch shows owned
 * objects: when one that is no longer selected is deleted, its copy must go, too.
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

  /** Synced originals, and copies. */
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

  /** If both watches show the object: the newer one. */
  get(key: string): ClaimedView | undefined {
    let newest: ClaimedView | undefined;
    for (const { store } of this.#handles) {
      const found = store.get(key);
      if (found && (!newest || isOlder(newest.resourceVersion, found.resourceVersion))) newest = found;
    }
    return newest;
  }

  /** An object in both watches comes twice; so in `keysIn` and `keysNamed`. */
  *keys(): Iterable<string> {
    for (const { store } of this.#handles) for (const { key } of store.list()) yield key;
  }

  keysIn(namespace: string): string[] {
    return this.#keysBy(byNamespace, namespace);
  }

  keysNamed(name: string): string[] {
    return this.#keysBy(byName, name);
  }

  /** One for each watch; calls `onEvent` before it enqueues a key. */
  sources(onEvent: (key: string) => void): Source[] {
    return this.#handles.map(({ store }, i) =>
      fromSubscription(i === 0 ? 'consumer' : 'consumer-owned', store, ({ key }) => {
        onEvent(key);
        return [key];
      }),
    );
  }

  /** Of the oldest watch. */
  get ageMs(): number {
    return Math.max(...this.#handles.map(({ store }) => store.ageMs));
  }

  /** Refusals first. */
  get failing(): StoreFailure | undefined {
    const failures = this.#handles.flatMap(({ store }) => store.failing ?? []);
    return failures.find(({ refused }) => refused !== undefined) ?? failures[0];
  }

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
