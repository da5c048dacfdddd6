import type { Controller } from '../../engine/controller.ts';

/** `sync`: both ways. `drain`: the binding goes, and copies with it. */
export type SyncMode = 'sync' | 'drain';

/** What keeps the objects of one bound kind in step between the consumer and one provider. */
export interface Syncer {
  readonly controllers: readonly Controller[];
  /** Looks at every object again, and tries again what did not work so far. */
  resync(): void;
  /** Lets the deletes go through that are held back because they were too many at once. */
  allowDeletes(): void;
  /**
   * How many consumer objects still carry our finalizer, and while the binding is drained how many copies are left. Infinity while that is
   * not known.
   */
  held(): number;
  /** What is wrong with single objects, worst first, for the binding's condition; empty when all is well. */
  problems(): readonly string[];
  /** Whether the API server of the consumer serves the kind: it has listed its objects. */
  served(): boolean;
  /** Ends its watches; its controllers have been removed before. */
  close(): void;
}
