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

/** A write-through cache for each side, and the deletions that were observed on each side. */
export class ObjectCaches {
  readonly consumers: WriteThroughCache<SyncedObject>;
  readonly copies: WriteThroughCache<SyncedObject>;
  readonly #options: ObjectCachesOptions;
  /** By consumer key: uid of the consumer object whose deletion was observed. */
  readonly #deletedConsumers = new Map<string, string>();
  /** Provider keys at which no copy exists: a watch that is still open showed its deletion, or a read found none. */
  readonly #absentCopies = new Set<string>();

  constructor(options: ObjectCachesOptions) {
    this.#options = options;
    const { consumers, copies, clock } = options;
    const cache = (watched: (key: string) => SyncedObject | undefined) =>
      new WriteThroughCache({ watched, uidOf: ({ uid }: SyncedObject) => uid, clock });
    this.consumers = cache((key) => consumers.get(key));
    this.copies = cache((key) => copies.store.get(key));
  }

  /** Records an event of the consumer's watch. Returns the key to reconcile. */
  observeConsumer(event: StoreEvent<SyncedObject>): string {
    this.consumers.observe(event);
    const { key } = event;
    if (event.type !== 'deleted') this.#deletedConsumers.delete(key);
    // Only for objects with a copy, so that the map stays bounded.
    else if (!event.inferred && this.#hasCopy(key)) this.#deletedConsumers.set(key, event.before.uid);
    return key;
  }

  /**
   * Records an event of the provider's watch. Returns the consumer key to reconcile. Undefined if the object is neither a copy for this
   * consumer nor at the place of a consumer object's copy.
   */
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

  /** Call after an API server has answered that the consumer object does not exist. */
  recordConsumerDeleted(key: string, uid: string): void {
    this.consumers.deleted(key, uid);
    this.#deletedConsumers.set(key, uid);
  }

  /** uid of the consumer object of this key whose deletion was observed; undefined if none was. */
  deletedConsumerUid(key: string): string | undefined {
    return this.#deletedConsumers.get(key);
  }

  /** Whether an observed deletion or a read has shown that no copy exists at this provider key. */
  isCopyAbsent(key: string | undefined): boolean {
    return key !== undefined && this.#absentCopies.has(key);
  }

  /** Call after a read has found no copy at this provider key. */
  recordCopyAbsent(key: string): void {
    this.#absentCopies.add(key);
  }

  /** Call before a create is sent, because the copy may exist from then on. */
  recordCopyCreate(key: string): void {
    this.#absentCopies.delete(key);
  }

  /** Forgets a key that has no object on either side. */
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

/**
 * Detects repairs: writes of a copy that was changed or deleted in the provider. A write after a change of the consumer object is no
 * repair.
 */
export class Repairs {
  /** By consumer key: the object whose copy was last in sync. */
  readonly #inSync = new Map<string, { readonly uid: string; readonly generation: number }>();

  /** Records that the copy has all fields of the object's current generation. Objects without a generation are not recorded. */
  recordInSync({ key, uid, object }: SyncedObject): void {
    const { generation } = object.metadata;
    if (generation === undefined) this.#inSync.delete(key);
    else if (!this.wasInSync({ key, uid, object })) this.#inSync.set(key, { uid, generation });
  }

  /** Whether the copy has been in sync with the object's current generation, so that a write is a repair. */
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
