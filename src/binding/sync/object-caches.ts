import { clusterNamespaceAnnotation, consumerUidAnnotation } from '../../api/binding/names.ts';
import type { Clock } from '../../kit/clock.ts';
import type { StoreEvent } from '../../kube/store.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { ConsumerObjects } from './consumer-objects.ts';
import type { Copies } from './copies.ts';
import type { Isolation } from './isolation.ts';
import { annotationOf, type SyncedObject } from './synced-object.ts';

export interface ObjectCachesOptions {
  readonly consumers: ConsumerObjects;
  readonly copies: Copies;
  readonly isolation: Isolation;
  readonly clusterNamespace: string;
  readonly clock: Clock;
}

/** Write-through caches of both sides, and the deletions that were observed. */
export class ObjectCaches {
  readonly consumers: WriteThroughCache<SyncedObject>;
  readonly copies: WriteThroughCache<SyncedObject>;
  readonly #options: ObjectCachesOptions;
  readonly #deletedConsumers = new Map<string, string>();
  /** Provider keys without a copy, by an open watch or a read. */
  readonly #absentCopies = new Set<string>();

  constructor(options: ObjectCachesOptions) {
    this.#options = options;
    const { consumers, copies, clock } = options;
    const cache = (watched: (key: string) => SyncedObject | undefined) =>
      new WriteThroughCache({ watched, uidOf: ({ uid }: SyncedObject) => uid, clock });
    this.consumers = cache((key) => consumers.get(key));
    this.copies = cache((key) => copies.get(key));
  }

  observeConsumer(event: StoreEvent<SyncedObject>): string {
    this.consumers.observe(event);
    const { key } = event;
    if (event.type !== 'deleted') this.#deletedConsumers.delete(key);
    // The map stays bounded by the copies.
    else if (!event.inferred && this.#hasCopy(key)) this.#deletedConsumers.set(key, event.before.uid);
    return key;
  }

  /** Returns the consumer key to reconcile, if the object is a copy or in the place of one. */
  observeCopy(event: StoreEvent<SyncedObject>): string | undefined {
    this.copies.observe(event);
    const consumerKey = this.#options.isolation.consumerKeyOf(event.key);
    if (event.type !== 'deleted') this.#absentCopies.delete(event.key);
    if (consumerKey === undefined) return undefined;
    const isCopy =
      ('now' in event && this.#isCopyForConsumer(event.now)) ||
      ('before' in event && this.#isCopyForConsumer(event.before));
    if (!isCopy && !this.#options.consumers.get(consumerKey)) return undefined;
    // An object also leaves the store when its namespace is no longer watched.
    if (event.type === 'deleted' && this.#options.copies.isListed(event.key)) this.#absentCopies.add(event.key);
    return consumerKey;
  }

  /** An API server answered that it does not exist. */
  recordConsumerDeleted(key: string, uid: string): void {
    this.consumers.deleted(key, uid);
    this.#deletedConsumers.set(key, uid);
  }

  deletedConsumerUid(key: string): string | undefined {
    return this.#deletedConsumers.get(key);
  }

  /** Known from an observed deletion or a read. */
  isCopyAbsent(key: string | undefined): boolean {
    return key !== undefined && this.#absentCopies.has(key);
  }

  /** A read has found no copy. */
  recordCopyAbsent(key: string): void {
    this.#absentCopies.add(key);
  }

  /** Before a create is sent: the copy may exist from then on. */
  recordCopyCreate(key: string): void {
    this.#absentCopies.delete(key);
  }

  forget(consumerKey: string, copyKey: string | undefined): void {
    this.#deletedConsumers.delete(consumerKey);
    this.consumers.forget(consumerKey);
    if (copyKey === undefined) return;
    this.#absentCopies.delete(copyKey);
    this.copies.forget(copyKey);
  }

  clear(): void {
    this.#deletedConsumers.clear();
    this.#absentCopies.clear();
    this.consumers.clear();
    this.copies.clear();
  }

  #isCopyForConsumer(copy: SyncedObject): boolean {
    return annotationOf(copy, clusterNamespaceAnnotation) === this.#options.clusterNamespace;
  }

  #hasCopy(consumerKey: string): boolean {
    const place = this.#options.isolation.placeOf(consumerKey);
    const copy = place.kind === 'at' ? this.copies.get(place.key) : undefined;
    return copy !== undefined && annotationOf(copy, consumerUidAnnotation) !== undefined;
  }
}

/** Detects writes of a copy that was changed or deleted in the provider. */
export class Repairs {
  /** By consumer key: the object whose copy was last in sync. */
  readonly #inSync = new Map<string, { readonly uid: string; readonly generation: number }>();

  /** Objects without a generation are not recorded. */
  recordInSync({ key, uid, object }: SyncedObject): void {
    const { generation } = object.metadata;
    if (generation === undefined) this.#inSync.delete(key);
    else if (!this.wasInSync({ key, uid, object })) this.#inSync.set(key, { uid, generation });
  }

  /** In the current generation, so a write is a repair. */
  wasInSync({ key, uid, object }: Pick<SyncedObject, 'key' | 'uid' | 'object'>): boolean {
    const recorded = this.#inSync.get(key);
    return recorded !== undefined && recorded.uid === uid && recorded.generation === object.metadata.generation;
  }

  forget(key: string): void {
    this.#inSync.delete(key);
  }

  clear(): void {
    this.#inSync.clear();
  }
}
