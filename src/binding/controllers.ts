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
  /** The client that writes to a provider go through: only while this process leads, and not at all in a dry run. */
  readonly writeClient: (client: Client) => Client;
  readonly dryRun?: boolean;
  /** Version of this program. */
  readonly version: string;
  /** How often exports are listed while they cannot be watched, milliseconds. */
  readonly pollingMs: number;
  /** What providers may bind here, as `<resource>.<group>`; undefined means anything. */
  readonly allowed: readonly string[] | undefined;
  /** The namespaces that providers may have made here; undefined means any. */
  readonly allowedNamespaces: readonly string[] | undefined;
}

interface SessionDeps extends KonnectorDeps {
  readonly registry: SessionRegistry;
  readonly watches: SecretWatches;
  readonly syncers: RunningSyncers;
}

/** The loops of the binding half that run once, in the order in which they start. */
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
    // The kinds that all others watch.
    consumerCrds(deps),
    // Which providers there are.
    konnectorController({ ...deps, registry, watches, secrets, pool }),
    // What each binding says, its CRDs, and its end.
    bindingController(registry, deps, { syncers, allowed: deps.allowed }),
    bundleController({ ...deps, sessions: registry }),
  ];
}

/** Those that run once for each provider session, as long as it lasts. */
function sessionControllers(session: OpenSession, deps: SessionDeps): Controller[] {
  const { registry, syncers, allowed, allowedNamespaces } = deps;
  const mayHave = (namespace: string): boolean => allowedNamespaces?.includes(namespace) ?? true;
  return [
    // The kubeconfig and the heartbeat.
    clusterBindingController(session, deps),
    namespaceLifecycle(session, deps, { allowed: mayHave }),
    // Starts and stops what syncs the objects themselves: loops of their own, one for each bound kind.
    serviceExportController(session, registry, deps, { openSyncer, openClaims, syncers, allowed }),
  ];
}

function consumerCrds({ consumer, client, clock, log, dryRun }: KonnectorDeps): Runnable {
  return {
    name: 'consumer-crds',
    async run(signal, onSynced) {
      // They will not come about, so nothing may wait for them.
      if (dryRun) onSynced();
      await installConsumerCrds({ cluster: consumer, client, clock, log }, signal);
      onSynced();
      await aborted(signal);
    },
  };
}

/** How long ago each session's heartbeat was written, as its provider has it; sessions without one are left out. */
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
