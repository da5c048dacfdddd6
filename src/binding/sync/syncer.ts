import type { Controller } from '../../engine/controller.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BoundSchemaView, ExportView } from '../stores/views.ts';

/** What keeps the objects of one bound kind in step between the consumer and one provider. */
export interface Syncer {
  readonly controllers: readonly Controller[];
  /** Looks at every object again. */
  resync(): void;
  /** How many consumer objects still carry our finalizer. */
  held(): number;
  /** What is wrong with single objects, worst first, for the binding's condition; empty when all is well. */
  problems(): readonly string[];
  /** Ends its watches; its controllers have been removed before. */
  close(): void;
}

export interface SyncerOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly schema: BoundSchemaView;
  /**
   * `sync`: both ways. `drain`: the binding goes, consumer objects are being deleted; copies go first, then finalizers.
   * `release`: copies stay or cannot be reached any more; only our finalizers are taken off.
   */
  readonly mode: SyncMode;
}

export type SyncMode = 'sync' | 'drain' | 'release';
