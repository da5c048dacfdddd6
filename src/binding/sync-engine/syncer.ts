import type { Controller } from '../../engine/controller.ts';

export type Side = 'consumer' | 'provider';

/** `drain`: the binding is being deleted, and the syncer deletes its copies. */
export type SyncMode = 'sync' | 'drain';

/** An API server let the konnector list and watch the kind, and no longer does. */
export interface RefusedWatch {
  readonly side: Side;
  readonly code: number;
  /** `<plural>.<group>`, or `<plural>` in the core group. */
  readonly resource: string;
}

/** Of one bound kind, or of the objects that one export claims. */
export interface Syncer {
  readonly controllers: readonly Controller[];
  /** Also retries failed calls at once. */
  resync(): void;
  /** Sends the deletes that are held back because there are too many at once. */
  allowDeletes(): void;
  /** Objects with the syncer finalizer or, in `drain`, a copy to delete; Infinity if unknown. */
  remaining(): number;
  /** Those of the whole kind, then of single objects, worst first. */
  problems(): readonly string[];
  refusedWatches(): readonly RefusedWatch[];
  /** The consumer's objects have been listed, or nothing waits for them. */
  served(): boolean;
  /** The caller has removed the controllers. */
  close(): void;
}
