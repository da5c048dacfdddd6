import { Controller } from '../../engine/controller.ts';
import { fromEach, fromSubscription } from '../../engine/sources/from-subscription.ts';
import { interval } from '../../engine/sources/interval.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession, Sessions } from '../sessions/provider-session.ts';
import { bySecret } from '../stores/consumer-stores.ts';
import { BundleReconciler } from './bundle-reconciler.ts';
import { DeletedExports } from './deleted-exports.ts';
import { bundleOwners } from './plan-bundle.ts';

export interface BundleControllerDeps extends BindingDeps {
  readonly sessions: Sessions;
  /** Milliseconds. While the watch of the exports is broken, each poll lists them. */
  readonly pollingMs: number;
}

const name = 'bundle';

export function bundleController(deps: BundleControllerDeps): Controller {
  const { stores, sessions, clock, log, metrics, pollingMs } = deps;
  const { bundles, bindings } = stores;
  const deleted = new DeletedExports();
  const bundlesOfSecret = (secret: string): string[] => bundles.byIndex(bySecret, secret).map((bundle) => bundle.key);
  const bundlesOfSession = (session: ProviderSession): string[] =>
    [...sessions.secretsOf(session)].flatMap(bundlesOfSecret);
  return new Controller({
    name,
    sources: [
      fromSubscription('bundle', bundles, (event) => [event.key]),
      fromSubscription('binding', bindings, (event) =>
        bundleOwners('now' in event ? event.now : event.before).map((owner) => owner.name),
      ),
      fromSubscription('session', sessions, bundlesOfSecret),
      fromEach('export', sessions, (session, emit) =>
        session.stores.exports.subscribe((event) => {
          deleted.observe(session, event);
          if (event.type === 'updated') return;
          for (const key of bundlesOfSession(session)) emit(key, 'export');
        }),
      ),
      interval({ name: 'poll', clock, everyMs: pollingMs, keys: () => [...bundles.list()].map(({ key }) => key) }),
    ],
    reconciler: new BundleReconciler({ ...deps, deleted }),
    clock,
    log,
    metrics: metrics.controller(name),
    workers: 4,
    backoff: { baseMs: 500, capMs: 30_000 },
  });
}
