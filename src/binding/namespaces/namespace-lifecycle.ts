import { Controller } from '../../engine/controller.ts';
import { fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { BindingDeps } from '../deps.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { NamespaceReconciler } from './namespace-reconciler.ts';

export interface NamespaceLifecycleOptions {
  /** Whether the provider may have a namespace of this name made in the consumer. Default: every one. */
  readonly allowed?: (namespace: string) => boolean;
}

/** The controller that makes the namespaces that a provider asks for, and gives back those whose consumer namespace is gone. */
export function namespaceLifecycle(
  session: ProviderSession,
  deps: BindingDeps,
  { allowed = () => true }: NamespaceLifecycleOptions = {},
): Controller {
  const name = `namespaces/${session.id}`;
  const { clusterNamespace } = session;
  const { serviceNamespaces } = session.stores;
  return new Controller({
    name,
    sources: [
      fromSubscription('namespace', deps.stores.namespaces, ({ key }) =>
        serviceNamespaces.get(`${clusterNamespace}/${key}`) ? [key] : [],
      ),
      fromSubscription('serviceNamespace', serviceNamespaces, (event) => {
        const view = 'now' in event ? event.now : event.before;
        return view.namespace === clusterNamespace ? [view.name] : [];
      }),
    ],
    reconciler: new NamespaceReconciler({
      session,
      namespaces: deps.stores.namespaces,
      client: deps.client,
      allowed,
      log: deps.log.child({ provider: session.id }),
    }),
    workers: 4,
    clock: deps.clock,
    log: deps.log,
    // Sessions come and go with every rotation, series stay.
    metrics: deps.metrics.controller('namespaces'),
  });
}
