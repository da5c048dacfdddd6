import type { Controller } from '../../engine/controller.ts';

/** The cluster of an object or a call. */
export type Side = 'consumer' | 'provider';

/** `sync`: the syncer copies changes in both directions. `drain`: the binding is being deleted, and the syncer deletes its copies. */
export type SyncMode = 'sync' | 'drain';

/** A kind that an API server let the konnector list and watch, and no longer does. */
export interface RefusedWatch {
  readonly side: Side;
  /** Status code: 401 or 403. */
  readonly code: number;
  /** `<plural>.<group>`, or `<plural>` in the core group. */
  readonly resource: string;
}

/** Syncs objects between the consumer and one provider: the objects of one bound kind, or the objects that one export claims. */
export interface Syncer {
  readonly controllers: readonly Controller[];
  /** Reconciles every object again and retries failed calls at once. */
  resync(): void;
  /** Releases the deletes that the delete breaker holds back because there are too many at once. */
  allowDeletes(): void;
  /**
   * Number of keys whose consumer object has the finalizer `kubebind.io/syncer` or, in mode `drain`, whose copy the drain deletes. Infinity
   * while that number is not known. For claimed objects, which have no finalizer, 0 in mode `sync`.
   */
  remaining(): number;
  /** Problems for the binding's condition: first those of the whole kind, then those of single objects, worst first. */
  problems(): readonly string[];
  /** The watches that a side no longer allows. */
  refusedWatches(): readonly RefusedWatch[];
  /** Whether the consumer's API server has listed the objects of the kind. Also true if there is no version to sync. */
  served(): boolean;
  /** Ends the watches. The caller has removed the controllers. */
  close(): void;
}
