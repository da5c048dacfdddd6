import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ProviderStores } from '../stores/provider-stores.ts';
import type { RefusedWatch } from '../sync-engine/syncer.ts';

/**
 * One provider, opened with one kubeconfig. All Secrets with this kubeconfig share the session. It ends when this replica loses the
 * leadership, or when it serves no Secret any more that is labeled or that a binding or bundle names.
 */
export interface ProviderSession {
  /** Short hash of server, namespace, and credentials; it reveals none of them. For logs, metrics, and names of controllers. */
  readonly id: string;
  /** The namespace of the kubeconfig's context. The provider reserves it for this consumer. */
  readonly clusterNamespace: string;
  /** For watches. Writes go through `client`. */
  readonly cluster: Cluster;
  /** Writes only while this replica is the leader; in a dry run it changes nothing. */
  readonly client: Client;
  readonly stores: ProviderStores;
  /** uid of the cluster namespace, which distinguishes providers; undefined until it has been read, or if reading it is forbidden. */
  readonly clusterNamespaceUid: string | undefined;
  readonly state: SessionState;
  /** The kinds of `stores` that the provider no longer lets this cluster watch. */
  refusedWatches(): readonly RefusedWatch[];
}

/** How far the session has come in reading the provider. */
export type SessionState =
  /** The stores are not synced. `problem`: the last error, once reading the cluster namespace has failed twice. A 403 is not an error. */
  | { readonly kind: 'connecting'; readonly problem?: string }
  /** The stores have been listed once. */
  | { readonly kind: 'synced' }
  /** The stores did not sync within 2 min 30 s. The watches keep retrying. */
  | { readonly kind: 'unreachable'; readonly message: string };

/** The result of looking up the session of a kubeconfig reference. */
export type SessionLookup =
  /** The session of the Secret's current content. */
  | { readonly kind: 'session'; readonly session: ProviderSession }
  /**
   * The Secret does not exist, cannot be read, or is not valid; its new kubeconfig failed the verification; or the APIServiceBinding is not
   * valid. `lastGood`: the session of an earlier content of the Secret, which still serves; absent if there is none.
   */
  | {
      readonly kind: 'invalid';
      readonly reason: SecretProblem | 'APIServiceBindingInvalid';
      readonly message: string;
      readonly lastGood?: ProviderSession;
    }
  /** The Secret has not been read yet. */
  | { readonly kind: 'pending' };

/** Why a kubeconfig Secret cannot be used, as a reason of conditions. */
export type SecretProblem = 'KubeconfigSecretNotFound' | 'KubeconfigSecretInvalid';

/** The open sessions, by kubeconfig Secret. */
export interface Sessions {
  lookup(ref: SecretKeyRef): SessionLookup;
  /** All open sessions that serve a Secret. */
  list(): Iterable<ProviderSession>;
  /** The Secrets (`namespace/name`) that a session serves now. */
  secretsOf(session: ProviderSession): ReadonlySet<string>;
  /** Result of a session's last heartbeat; undefined before the first. */
  heartbeat(session: ProviderSession): Heartbeat | undefined;
  /**
   * Calls `listener` with `namespace/name` of each Secret whose lookup, session state, refused watches, uid of the cluster namespace, or
   * heartbeat may have changed. Returns a function that unsubscribes.
   */
  subscribe(listener: (secret: string) => void): () => void;
}

/** The result of the last heartbeat of a session. */
export type Heartbeat =
  | { readonly ok: true }
  /** `message`: error of the failed write or read, or that the ClusterBinding is missing or not valid. */
  | { readonly ok: false; readonly message: string };

/** Looks up the session of a binding. */
export function lookupOf(sessions: Sessions, { name, secretRef, specProblem }: BindingView): SessionLookup {
  if (specProblem === undefined) return sessions.lookup(secretRef);
  const message = `APIServiceBinding ${name} is not valid: ${specProblem}; it binds nothing; correct it, or delete it, with the objects of the kinds that it bound`;
  return { kind: 'invalid', reason: 'APIServiceBindingInvalid', message };
}

/**
 * The session that serves a kubeconfig reference: that of the Secret's current content or, while this content cannot be used, `lastGood`.
 * Undefined if there is neither.
 */
export function servingSession(lookup: SessionLookup): ProviderSession | undefined {
  if (lookup.kind === 'session') return lookup.session;
  return lookup.kind === 'invalid' ? lookup.lastGood : undefined;
}
