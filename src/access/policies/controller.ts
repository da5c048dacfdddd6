import { Controller } from '../../engine/controller.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Projected, Store } from '../../kube/store.ts';
import type { Log } from '../../observe/log.ts';
import type { Metrics } from '../../observe/metrics.ts';
import type { PolicyGuard } from './policy-guard.ts';

interface PolicyControllerDeps {
  readonly guard: PolicyGuard;
  /** Of `certifyingSpecs`. */
  readonly stores: readonly Store<Projected>[];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Events only make it look again, so it does not wait for the lists. */
export function policyController({ guard, stores, clock, log, metrics }: PolicyControllerDeps): Controller {
  policyMetrics(metrics, guard);
  const name = 'policies';
  return new Controller({
    name,
    clock,
    log,
    metrics: metrics.controller(name),
    sources: [
      guard.term,
      ...stores.map((store) => {
        const events = { subscribe: (listener: (event: unknown) => void) => store.subscribe(listener) };
        return fromSubscription(store.resource.plural, events, () => guard.changed());
      }),
    ],
    reconciler: guard,
    workers: 1,
    backoff: { baseMs: 250, capMs: 2000 },
  });
}

export function policyMetrics(metrics: Metrics, guard: Pick<PolicyGuard, 'gauge'>): void {
  metrics.collected(
    {
      name: 'drawbridge_policies_in_force',
      help: 'Of the leader: 1 if it has proven that the admission policies are in force, else 0.',
      labels: [],
    },
    (set) => {
      if (guard.gauge !== undefined) set({}, guard.gauge);
    },
  );
}
