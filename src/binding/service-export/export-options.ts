import type { BindingDeps } from '../deps.ts';
import type { RunningSyncers, Work } from '../service-binding/running-syncers.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BindingView, ExportView } from '../stores/views.ts';
import type { SyncerOptions } from '../sync/open-syncer.ts';
import type { Syncer, SyncMode } from '../sync-engine/syncer.ts';

/** What an export's provider claims besides the bound objects. */
export interface ClaimOptions {
  readonly session: ProviderSession;
  /** Its claims are those that are honoured. */
  readonly exported: ExportView;
  readonly mode: SyncMode;
  /** Whether another binding leads to the same provider, or leads nobody knows where: what is claimed may be shared by it as well. */
  readonly mayLeadHere: (binding: BindingView) => boolean;
  /** To be called when its `problems()` may read differently, and outside of mode `sync` when its `held()` may. */
  readonly onProblems: () => void;
}

export interface ExportOptions {
  readonly openSyncer: (options: SyncerOptions, deps: BindingDeps) => Syncer;
  readonly openClaims: (options: ClaimOptions, deps: BindingDeps) => Work;
  /** Shared by the controllers of all sessions, and with the controller of bindings. */
  readonly syncers: RunningSyncers;
  /** What providers may bind here, as `<resource>.<group>`; undefined means anything. */
  readonly allowed?: readonly string[] | undefined;
}
