import { keyOf } from '../api/object.ts';
import { Controller } from '../engine/controller.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import { interval } from '../engine/sources/interval.ts';
import type { Metrics } from '../observe/metrics.ts';
import { CertificateReconciler, type CertificateReconcilerOptions } from './certificate-reconciler.ts';

export interface CertificateDeps extends CertificateReconcilerOptions {
  readonly metrics: Metrics;
}

/** For changes of the wall clock, which neither watches nor deadlines report. */
const resyncMs = 6 * 3600_000;

/** Renews the serving certificate; keeps webhook configurations and APIService current. */
export function certificateControllers(deps: CertificateDeps): Controller[] {
  const { clock, log, metrics, stores } = deps;
  const name = 'certificate';
  const key = keyOf(deps.secret);
  const all = [stores.secret, ...stores.configurations];
  return [
    new Controller({
      name,
      clock,
      log,
      metrics: metrics.controller(name),
      sources: [
        ...all.map((store) => fromSubscription<unknown>(store.resource.plural, store, () => [key])),
        // At start, no event reports a missing Secret.
        interval({ name: 'resync', clock, everyMs: resyncMs, keys: () => [key] }),
      ],
      reconciler: new CertificateReconciler(deps),
      workers: 1,
      backoff: { baseMs: 100, capMs: 30_000 },
    }),
  ];
}
