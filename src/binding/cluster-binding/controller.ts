import { clusterBindingName } from '../../api/binding/names.ts';
import { keyOf, nameOf } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { Controller } from '../../engine/controller.ts';
import type { Source } from '../../engine/source.ts';
import { fromEach, fromSubscription } from '../../engine/sources/from-subscription.ts';
import { interval } from '../../engine/sources/interval.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { Credentials } from '../../kube/credentials.ts';
import type { Store } from '../../kube/store.ts';
import type { BindingDeps } from '../deps.ts';
import type { OpenSession } from '../sessions/open-session.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import { type SecretView, type SecretWatches, secretView } from '../sessions/secret-watches.ts';
import type { SessionRegistry } from '../sessions/session-registry.ts';
import { ClusterBindingReconciler, isSilent } from './cluster-binding-reconciler.ts';
import { heartbeatDueMs } from './plan-status.ts';
import { SecretSync } from './secret-sync.ts';

export interface ClusterBindingControllerDeps extends BindingDeps {
  readonly registry: SessionRegistry;
  readonly watches: SecretWatches;
  readonly connect: (credentials: Credentials) => Cluster;
  readonly version: string;
}

const name = 'cluster-binding';

const silenceCheckMs = 5_000;

/** Sends the heartbeats of one session and copies the provider's kubeconfig to the consumer. */
export function clusterBindingController(session: OpenSession, deps: ClusterBindingControllerDeps): Controller {
  const { registry, watches, clock, log, metrics } = deps;
  const key = keyOf({ namespace: session.clusterNamespace, name: clusterBindingName });
  const providerSecret = watchProviderSecret(session, key);
  // An old and a new kubeconfig may serve the same ClusterBinding.
  const otherSessions = (): OpenSession[] =>
    [...registry.list()].filter((other) => other !== session && usesSameClusterBinding(other, session));
  const reconciler = new ClusterBindingReconciler({
    ...deps,
    session,
    providerSecret: (secret) => providerSecret.store(secret),
    sync: new SecretSync({
      ...deps,
      session,
      refs: () => registry.refsOf(session),
      getSecret: (secret) => watches.get(secret),
    }),
    refs: () => [session, ...otherSessions()].flatMap((each) => registry.refsOf(each).sort(byKey)),
    recordHeartbeat: (heartbeat) => registry.recordHeartbeat(session, heartbeat),
  });
  return new Controller({
    name: `${name}/${session.id}`,
    sources: [
      fromSubscription('clusterbinding', session.stores.clusterBindings, (event) => (event.key === key ? [key] : [])),
      fromSubscription('export', session.stores.exports, (event) => (event.type === 'updated' ? [] : [key])),
      providerSecret.source,
      fromSubscription('secret', registry, (secret) => (registry.secretsOf(session).has(secret) ? [key] : [])),
      // While there is no ClusterBinding, no event enqueues the key.
      interval({ name: 'heartbeat', clock, everyMs: heartbeatDueMs, keys: () => [key] }),
      interval({ name: 'silence', clock, everyMs: silenceCheckMs, keys: () => (isSilent(session) ? [key] : []) }),
    ],
    reconciler,
    clock,
    log,
    metrics: metrics.controller(name),
    workers: 1,
    // The cap bounds the time until a recovered provider is noticed.
    backoff: { baseMs: 500, capMs: 5000 },
  });
}

interface ProviderSecret {
  readonly source: Source;
  readonly store: (secret: string) => Store<SecretView> | undefined;
}

const usesSameClusterBinding = (a: OpenSession, b: OpenSession): boolean =>
  a.clusterNamespace === b.clusterNamespace &&
  (a.server === b.server || (a.clusterNamespaceUid !== undefined && a.clusterNamespaceUid === b.clusterNamespaceUid));

const byKey = (a: { namespace: string; name: string }, b: { namespace: string; name: string }): number =>
  keyOf(a) < keyOf(b) ? -1 : 1;

/** Nothing waits for it: heartbeats need no permission to watch the Secret. */
function watchProviderSecret({ cluster, stores: { clusterBindings } }: ProviderSession, key: string): ProviderSecret {
  const name = 'provider-secret';
  const namedSecrets = {
    subscribe: (listener: () => void) => clusterBindings.subscribe(listener),
    list: () => {
      const binding = clusterBindings.get(key);
      return binding ? [keyOf({ namespace: binding.namespace, name: binding.secretRef.name })] : [];
    },
  };
  let watched: { readonly secret: string; readonly store: Store<SecretView> } | undefined;
  return {
    store: (secret) => (watched?.secret === secret ? watched.store : undefined),
    source: fromEach(name, namedSecrets, (secret, emit) => {
      const { namespace = '', name: secretName } = nameOf(secret);
      const fieldSelector = `metadata.name=${secretName}`;
      const handle = cluster.watch({ resource: secrets, namespace, fieldSelector, project: secretView });
      const { store } = handle;
      watched = { secret, store };
      const enqueue = (): void => {
        if (watched?.store === store) emit(key, name);
      };
      store.subscribe(enqueue);
      store.whenSynced().then(enqueue, () => undefined);
      return () => {
        watched = undefined;
        handle.release();
      };
    }),
  };
}
