import { Controller } from '../../engine/controller.ts';
import type { BindingDeps } from '../deps.ts';
import type { Sessions } from '../sessions/provider-session.ts';
import { BindingReconciler } from './binding-reconciler.ts';
import { bindingSources } from './binding-sources.ts';
import { BindingWriter } from './binding-writer.ts';
import { CrdWriter } from './crd-writer.ts';
import { Releaser } from './releaser.ts';
import type { RunningSyncers } from './running-syncers.ts';

export interface BindingOptions {
  /** Shared with the controllers of exports. */
  readonly syncers: RunningSyncers;
  /** What providers may bind here, as `<resource>.<group>`; undefined means anything. */
  readonly allowed?: readonly string[] | undefined;
}

/** The loop over APIServiceBindings: everything they say, and what is made for them in this cluster. */
export function bindingController(
  sessions: Sessions,
  deps: BindingDeps,
  { syncers, allowed }: BindingOptions,
): Controller {
  const { clock, log, metrics, stores } = deps;
  const name = 'binding';
  return new Controller({
    name,
    clock,
    log,
    metrics: metrics.controller(name),
    sources: bindingSources(sessions, syncers, stores),
    reconciler: new BindingReconciler({
      ...deps,
      sessions,
      syncers,
      allowed,
      writer: new BindingWriter(deps),
      crdWriter: new CrdWriter({ ...deps, crds: stores.crds }),
      releaser: new Releaser(deps),
    }),
  });
}
