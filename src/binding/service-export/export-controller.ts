import { Controller } from '../../engine/controller.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import type { ExportOptions } from './export-options.ts';
import { ExportReconciler } from './export-reconciler.ts';
import { exportSources } from './export-sources.ts';
import { ExportWriter } from './export-writer.ts';
import { SyncerSet } from './syncer-set.ts';

/** A provider that lost sight of us takes no more than this to hear from us again, milliseconds. */
const backoff = { baseMs: 100, capMs: 5000 };

/** The loop over the APIServiceExports of one provider. Its syncers live as long as it runs: they are closed before a run ends. */
export function serviceExportController(
  session: ProviderSession,
  sessions: Sessions,
  deps: BindingDeps,
  options: ExportOptions,
): Controller {
  return new ExportController(session, sessions, deps, options);
}

class ExportController extends Controller {
  readonly #set: SyncerSet;

  constructor(session: ProviderSession, sessions: Sessions, deps: BindingDeps, options: ExportOptions) {
    const { clock, log, metrics, running, stores } = deps;
    const set = new SyncerSet({ running, syncers: options.syncers });
    const writer = new ExportWriter(session, clock);
    super({
      name: `service-export-${session.id}`,
      clock,
      log,
      metrics: metrics.controller('service-export'),
      sources: exportSources(session, sessions, stores),
      reconciler: new ExportReconciler({ ...deps, ...options, session, sessions, set, writer }),
      backoff,
    });
    this.#set = set;
  }

  override async run(signal: AbortSignal, onSynced?: () => void): Promise<void> {
    try {
      await super.run(signal, onSynced);
    } finally {
      await this.#set.closeAll();
    }
  }
}
