import { keyOf } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import { type Emission, fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { HintSource } from '../../engine/sources/hint.ts';
import type { Runnable } from '../../engine/supervisor.ts';
import type { StoreEvent } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import type { BindingView, BundleView } from '../stores/consumer-stores.ts';
import type { SecretView, SecretWatches } from './secret-watches.ts';
import type { SessionPool } from './session-pool.ts';
import { SessionReconciler } from './session-reconciler.ts';
import type { SessionRegistry } from './session-registry.ts';

export interface SessionControllerDeps extends Pick<BindingDeps, 'client' | 'stores' | 'clock' | 'log' | 'metrics'> {
  readonly watches: SecretWatches;
  /** Secrets of consumers that have changed. */
  readonly secrets: HintSource;
  readonly pool: SessionPool;
  readonly registry: SessionRegistry;
}

const name = 'konnector';

/** Opens sessions from kubeconfig Secrets; they end when this replica loses its Lease. */
export function sessionController(deps: SessionControllerDeps): Runnable {
  const { stores, watches, secrets, pool, clock, log, metrics } = deps;
  const reconciler = new SessionReconciler(deps);
  const controller = new Controller({
    name,
    sources: [
      fromSubscription('binding', stores.bindings, secretOf),
      fromSubscription('bundle', stores.bundles, secretOf),
      // Without `whenSynced`: the server may lack permission to list labeled Secrets.
      fromSubscription(
        'labeled',
        { subscribe: (listener) => watches.labeled.subscribe(listener) },
        (event: StoreEvent<SecretView>) => [event.key],
      ),
      secrets,
    ],
    reconciler,
    clock,
    log,
    metrics: metrics.controller(name),
    backoff: { baseMs: 500, capMs: 30_000 },
  });
  return {
    name,
    run: async (signal, onSynced) => {
      try {
        await controller.run(signal, onSynced);
      } finally {
        reconciler.suspend();
        await pool.closed();
      }
    },
  };
}

/** The reference is immutable, so only a change of validity matters. */
function secretOf(event: StoreEvent<BindingView | BundleView>): Emission[] {
  if (event.type === 'updated' && event.before.specProblem === event.now.specProblem) return [];
  const views = [...('before' in event ? [event.before] : []), ...('now' in event ? [event.now] : [])];
  return views
    .filter(({ specProblem }) => specProblem === undefined)
    .map(({ secretRef }) => ({ key: keyOf(secretRef) }));
}
