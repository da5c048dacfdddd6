import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ProviderStores } from '../stores/provider-stores.ts';
import type { RefusedWatch } from '../sync-engine/syncer.ts';

/**
 * One provider, opened with one kubeconfig, which several Secrets may hold. Ends with the
 * leadership, or when no Secret needs it.
 */
export interface ProviderSession {
  /** Short hash of server, namespace, and credentials; safe in logs and metrics. */
  readonly id: string;
  /** Of the kubeconfig's context: the provider reserves it for this consumer. */
  readonly clusterNamespace: string;
  /** For watches. Writes go through `client`. */
  readonly cluster: Cluster;
  /** Writes only while this replica leads; in a dry run it changes nothing. */
  readonly client: Client;
  readonly stores: ProviderStores;
  /** Distinguishes providers. Undefined until it has been read, or if that is forbidden. */
  readonly clusterNamespaceUid: string | undefined;
  readonly state: SessionState;
  refusedWatches(): readonly RefusedWatch[];
}

export type SessionState =
  /** `problem`: reading the cluster namespace has failed twice, not with a 403. */
  | { readonly kind: 'connecting'; readonly problem?: string }
  | { readonly kind: 'synced' }
  /** Not synced within 2 min 30 s. The watches keep retrying. */
  | { readonly kind: 'unreachable'; readonly message: string };

export type SessionLookup =
  | { readonly kind: 'session'; readonly session: ProviderSession }
  /** The Secret cannot be used. `lastGood` still serves, from its earlier content. */
  | {
      readonly kind: 'invalid';
      readonly reason: SecretProblem | 'APIServiceBindingInvalid';
      readonly message: string;
      readonly lastGood?: ProviderSession;
    }
  | { readonly kind: 'pending' };

export type SecretProblem = 'KubeconfigSecretNotFound' | 'KubeconfigSecretInvalid';

export interface Sessions {
  lookup(ref: SecretKeyRef): SessionLookup;
  list(): Iterable<ProviderSession>;
  secretsOf(session: ProviderSession): ReadonlySet<string>;
  heartbeat(session: ProviderSession): Heartbeat | undefined;
  /** Calls back with each Secret (`namespace/name`) whose lookup or session may have changed. */
  subscribe(listener: (secret: string) => void): () => void;
}

export type Heartbeat =
  | { readonly ok: true }
  /** Also if the ClusterBinding is missing or not valid. */
  | { readonly ok: false; readonly message: string };

export function lookupOf(sessions: Sessions, { name, secretRef, specProblem }: BindingView): SessionLookup {
  if (specProblem === undefined) return sessions.lookup(secretRef);
  const message = `APIServiceBinding ${name} is not valid: ${specProblem}; it binds nothing; correct it, or delete it, with the objects of the kinds that it bound`;
  return { kind: 'invalid', reason: 'APIServiceBindingInvalid', message };
}

/** Of the Secret's content or, while that cannot be used, `lastGood`. */
export function servingSession(lookup: SessionLookup): ProviderSession | undefined {
  if (lookup.kind === 'session') return lookup.session;
  return lookup.kind === 'invalid' ? lookup.lastGood : undefined;
}
