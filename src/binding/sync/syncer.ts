import type { Controller } from '../../engine/controller.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BoundSchemaView, ExportView } from '../stores/views.ts';
import type { SyncObserver } from './sync-observer.ts';

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
  /** How many objects it looks after: those of the consumer, and the copies of ours in the provider. */
  size(): { readonly objects: number; readonly copies: number };
  /** Milliseconds since the provider was heard on the watch of the kind; Infinity before the first time. */
  readonly watchAgeMs: number;
  /** Ends its watches; its controllers have been removed before. */
  close(): void;
}

export interface SyncerOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly schema: BoundSchemaView;
  /**
   * `sync`: both ways. `drain`: the binding goes, consumer objects are being deleted; copies go first, then finalizers.
   */
  readonly mode: SyncMode;
  /** Called when `served()` has changed, when `problems()` may have, and outside of mode `sync` when `held()` may have; a few times a second at most. */
  readonly onChange?: () => void;
  readonly observer?: SyncObserver;
  /** Uniform in [0, 1), for backoff. Default Math.random. */
  readonly random?: () => number;
}

export type SyncMode = 'sync' | 'drain';
