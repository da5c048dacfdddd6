import { clusterBindingName } from '../api/binding/names.ts';
import { keyOf } from '../api/object.ts';
import type { Controller } from '../engine/controller.ts';
import type { Runnable } from '../engine/member.ts';
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
import { namespaceLifecycle } from './namespaces/namespace-lifecycle.ts';
import { bindingController } from './service-binding/binding-controller.ts';
import { RunningSyncers } from './service-binding/running-syncers.ts';
import { serviceExportController } from './service-export/export-controller.ts';
import { changedSecrets, konnectorController } from './sessions/controller.ts';
import type { OpenSession } from './sessions/open-session.ts';
import type { ProviderSession } from './sessions/provider-session.ts';
import { SecretWatches } from './sessions/secret-watches.ts';
import { SessionPool } from './sessions/session-pool.ts';
import { SessionRegistry } from './sessions/session-registry.ts';
import { openSyncer } from './sync/open-syncer.ts';

export interface KonnectorDeps extends BindingDeps {
  /** Connects with the credentials of a provider. */
  readonly connect: (credentials: Credentials) => Cluster;
  /** Wraps a provider's client for writes: only while this replica is the leader, and never in a dry run. */
  readonly writeClient: (client: Client) => Client;
  readonly dryRun?: boolean;
  /** Version of this program. */
  readonly version: string;
  /** How often exports are listed while they cannot be watched, milliseconds. */
  readonly pollingMs: number;
  /** Resources that providers may bind, as `<resource>.<group>`; undefined means any. */
  readonly allowed: readonly string[] | undefined;
  /** Namespaces that the server may create for providers; undefined means any. */
  readonly allowedNamespaces: readonly string[] | undefined;
}

interface SessionDeps extends KonnectorDeps {
  readonly registry: SessionRegistry;
  readonly watches: SecretWatches;
  readonly syncers: RunningSyncers;
}

/** The controllers of the binding feature that run once, in their start order. */
export function bindingControllers(deps: KonnectorDeps): Runnable[] {
  const registry = new SessionRegistry();
  const syncers = new RunningSyncers();
  const secrets = changedSecrets();
  const watches = new SecretWatches(deps.consumer, (secret) => secrets.hint(secret));
  const pool = new SessionPool({
    ...deps,
    controllers: (session, running) => sessionControllers(session, { ...deps, running, registry, watches, syncers }),
    onChange: (session) => registry.changed(session),
  });
  bindingMetrics(deps.metrics).heartbeats(() => heartbeatAges(registry.list(), deps.clock));
  return [
    // Installs the kinds that all others watch.
    consumerCrds(deps),
    // Opens a session for each provider.
    konnectorController({ ...deps, registry, watches, secrets, pool }),
    // Status, CRDs, and deletion of each binding.
    bindingController(registry, deps, { syncers, allowed: deps.allowed }),
    bundleController({ ...deps, sessions: registry }),
  ];
}

/** The controllers of one provider session. */
function sessionControllers(session: OpenSession, deps: SessionDeps): Controller[] {
  const { registry, syncers, allowed, allowedNamespaces } = deps;
  const mayHave = (namespace: string): boolean => allowedNamespaces?.includes(namespace) ?? true;
  return [
    // The kubeconfig and the heartbeat.
    clusterBindingController(session, deps),
    namespaceLifecycle(session, deps, { allowed: mayHave }),
    // Starts and stops the syncers, which have one controller for each kind.
    serviceExportController(session, registry, deps, { openSyncer, openClaims, syncers, allowed }),
  ];
}

function consumerCrds({ consumer, client, clock, log, dryRun }: KonnectorDeps): Runnable {
  return {
    name: 'consumer-crds',
    async run(signal, onSynced) {
      // A dry run does not install the CRDs, so no controller may wait for them.
      if (dryRun) onSynced();
      await installConsumerCrds({ cluster: consumer, client, clock, log }, signal);
      onSynced();
      await aborted(signal);
    },
  };
}

/** The age of each session's heartbeat in the provider. Sessions without one are left out. */
function* heartbeatAges(
  sessions: Iterable<ProviderSession>,
  clock: Clock,
): Iterable<{ readonly session: string; readonly ageMs: number }> {
  for (const { id, clusterNamespace, stores } of sessions) {
    const found = stores.clusterBindings.get(keyOf({ namespace: clusterNamespace, name: clusterBindingName }));
    const beatMs = parseTime(found?.lastHeartbeatTime ?? '');
    if (beatMs !== undefined) yield { session: id, ageMs: Math.max(0, clock.now() - beatMs) };
  }
}
