import type { BindingDeps } from '../deps.ts';
import type { RunningSyncers } from '../service-binding/running-syncers.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { ExportView, PermissionClaim } from '../stores/views.ts';
import type { Syncer, SyncerOptions, SyncMode } from '../sync/syncer.ts';

/** What a provider claims of one kind, through one export. */
export interface ClaimOptions {
  readonly session: ProviderSession;
  readonly exported: ExportView;
  readonly claim: PermissionClaim;
  readonly mode: SyncMode;
}

export interface ExportOptions {
  readonly openSyncer: (options: SyncerOptions, deps: BindingDeps) => Syncer;
  readonly openClaims: (options: ClaimOptions, deps: BindingDeps) => Syncer;
  /** Shared by the controllers of all sessions, and with the controller of bindings. */
  readonly syncers: RunningSyncers;
  /** What providers may bind here, as `<resource>.<group>`; undefined means anything. */
  readonly allowed?: readonly string[] | undefined;
}
