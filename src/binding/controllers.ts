import { clusterBindingName } from '../api/binding/names.ts';
import { keyOf } from '../api/object.ts';
import type { Controller } from '../engine/controller.ts';
import { hintSource } from '../engine/sources/hint.ts';
import type { Runnable } from '../engine/supervisor.ts';
import { type Clock, parseTime } from '../kit/clock.ts';
import { aborted } from '../kit/promises.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Credentials } from '../kube/credentials.ts';
import { bundleController } from './bundles/controller.ts';
import { openClaims } from './claims/open-claims.ts';
import { clusterBindingController } from './cluster-binding/controller.ts';
import { installConsumerCrds } from './consumer-crds.ts';
import type { BindingDeps } from './deps.ts';
import { bindingMetrics } from './metrics.ts';
import { namespaceController } from './namespaces/namespace-controller.ts';
import { bindingController } from './service-binding/binding-controller.ts';
import { RunningSyncers } from './service-binding/running-syncers.ts';
import { ExportController } from './service-export/export-controller.ts';
import { sessionController } from './sessions/controller.ts';
import type { OpenSession } from './sessions/open-session.ts';
import type { ProviderSession } from './sessions/provider-session.ts';
import { SecretWatches } from './sessions/secret-watches.ts';
import { SessionPool } from './sessions/session-pool.ts';
import { SessionRegistry } from './sessions/session-registry.ts';
import { openSyncer } from './sync/open-syncer.ts';

export interface BindingControllersDeps extends BindingDeps {
  readonly connect: (credentials: Credentials) => Cluster;
  /** Wraps a provider's client, so that it writes only while this replica leads. */
  readonly writeClient: (client: Client) => Client;
  /** In a dry run, `client` and `writeClient` change nothing. */
  readonly dryRun?: boolean;
  readonly version: string;
  /** Between reconciles of each bundle. */
  readonly pollingMs: number;
  /** Resources that may be bound, as `<resource>.<group>`; undefined means any. */
  readonly bindable: readonly string[] | undefined;
  /** Consumer namespaces that may be created for providers; undefined means any. */
  readonly bindableNamespaces: readonly string[] | undefined;
}

interface SessionDeps extends BindingControllersDeps {
  readonly registry: SessionRegistry;
  readonly watches: SecretWatches;
  readonly syncers: RunningSyncers;
}

/** The controllers that belong to no session, in their start order. */
export function bindingControllers(deps: BindingControllersDeps): Runnable[] {
  const registry = new SessionRegistry();
  const syncers = new RunningSyncers();
  const secrets = hintSource('secret');
  const watches = new SecretWatches(deps.consumer, (secret) => {
    secrets.hint(secret);
    registry.notifySecret(secret);
  });
  const pool = new SessionPool({
    ...deps,
    controllers: (session, runningControllers) =>
      sessionControllers(session, { ...deps, runningControllers, registry, watches, syncers }),
    onChange: (session) => registry.notifyChanged(session),
  });
  bindingMetrics(deps.metrics).registerHeartbeatAges(() => heartbeatAges(registry.list(), deps.clock));
  return [
    // Installs the CRDs that the other controllers watch.
    consumerCrds(deps),
    // Opens the sessions with providers.
    sessionController({ ...deps, registry, watches, secrets, pool }),
    // Creates the CRDs of each binding, writes its status, and unbinds it.
    bindingController(registry, deps, { syncers, bindable: deps.bindable }),
    bundleController({ ...deps, sessions: registry }),
  ];
}

function sessionControllers(session: OpenSession, deps: SessionDeps): Controller[] {
  const { registry, syncers, bindable, bindableNamespaces } = deps;
  const mayCreateNamespace = (namespace: string): boolean => bindableNamespaces?.includes(namespace) ?? true;
  return [
    // Copies the provider's kubeconfig and writes heartbeats.
    clusterBindingController(session, deps),
    namespaceController(session, deps, mayCreateNamespace),
    // Starts and stops the syncers. Each syncer has one controller for each kind.
    new ExportController(session, registry, deps, { openSyncer, openClaims, syncers, bindable }),
  ];
}

function consumerCrds({ consumer, client, clock, log, dryRun }: BindingControllersDeps): Runnable {
  return {
    name: 'consumer-crds',
    async run(signal, onSynced) {
      // A dry run does not install the CRDs, so nothing may wait for them.
      if (dryRun) onSynced();
      await installConsumerCrds({ cluster: consumer, client, clock, log }, signal);
      onSynced();
      await aborted(signal);
    },
  };
}

/** Of the last heartbeat of each session that has sent one. */
function* heartbeatAges(
  sessions: Iterable<ProviderSession>,
  clock: Clock,
): Iterable<{ readonly session: string; readonly ageMs: number }> {
  for (const { id, clusterNamespace, stores } of sessions) {
    const clusterBinding = stores.clusterBindings.get(keyOf({ namespace: clusterNamespace, name: clusterBindingName }));
    const lastMs = parseTime(clusterBinding?.lastHeartbeatTime ?? '');
    if (lastMs !== undefined) yield { session: id, ageMs: Math.max(0, clock.now() - lastMs) };
  }
}
