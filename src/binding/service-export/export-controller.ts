import { Controller } from '../../engine/controller.ts';
import type { Source } from '../../engine/source.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { BindingDeps } from '../deps.ts';
import { owningBindings } from '../service-binding/owner.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import { bySecret, type ConsumerStores } from '../stores/consumer-stores.ts';
import { bySchema } from '../stores/provider-stores.ts';
import { type ExportOptions, ExportReconciler } from './export-reconciler.ts';
import { ExportWriter } from './export-writer.ts';
import { SyncerSet } from './syncer-set.ts';

/** The cap bounds the delay of a status write after the provider has recovered. */
const backoff = { baseMs: 100, capMs: 5000 };

/** For one session. `run` closes all its syncers before it resolves. */
export class ExportController extends Controller {
  readonly #set: SyncerSet;

  constructor(session: ProviderSession, sessions: Sessions, deps: BindingDeps, options: ExportOptions) {
    const { clock, log, metrics, runningControllers, stores } = deps;
    const set = new SyncerSet({ runningControllers, syncers: options.syncers });
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

function exportSources(session: ProviderSession, sessions: Sessions, consumer: ConsumerStores): Source[] {
  const { exports, schemas } = session.stores;
  const exportKey = (binding: string): string => `${session.clusterNamespace}/${binding}`;
  const exporting = (schema: string): string[] => exports.byIndex(bySchema, schema).map(({ key }) => key);
  return [
    fromSubscription('export', exports, ({ key }) => [key]),
    fromSubscription('schema', schemas, (event) => exporting('now' in event ? event.now.name : event.before.name)),
    fromSubscription('binding', consumer.bindings, ({ key }) => [exportKey(key)]),
    fromSubscription('crd', consumer.crds, (event) => {
      const { ownerReferences } = 'now' in event ? event.now : event.before;
      return [...exporting(event.key), ...owningBindings(ownerReferences).map(exportKey)];
    }),
    fromSubscription('session', sessions, (secret) =>
      consumer.bindings.byIndex(bySecret, secret).map(({ key }) => exportKey(key)),
    ),
  ];
}
