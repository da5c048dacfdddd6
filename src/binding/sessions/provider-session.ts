import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import type { Client } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ProviderStores } from '../stores/provider-stores.ts';

/**
 * One provider as one kubeconfig opens it. It lives as long as a binding, a bundle or a labelled Secret holds that very kubeconfig, and
 * all that do share it.
 */
export interface ProviderSession {
  /** Short hash of server, namespace and credentials: for logs, metrics and names of controllers. Tells nothing of the credentials. */
  readonly id: string;
  /** The namespace of the kubeconfig's context: all we have in the provider is there or belongs to it. */
  readonly clusterNamespace: string;
  /** For watches. Writes go through `client`. */
  readonly cluster: Cluster;
  /** Writes only while this process leads, and not at all in a dry run. */
  readonly client: Client;
  readonly stores: ProviderStores;
  /** uid of the cluster namespace, which tells providers apart; undefined while it could not be read yet. */
  readonly clusterNamespaceUid: string | undefined;
  readonly state: SessionState;
}

export type SessionState =
  /** `problem`: what the provider has been asked twice so far has failed. */
  | { readonly kind: 'connecting'; readonly problem?: string }
  /** The stores have been listed once. */
  | { readonly kind: 'synced' }
  /** They have not within 2 min 30 s; it goes on trying. */
  | { readonly kind: 'unreachable'; readonly message: string };

/** What a reference to a kubeconfig in a Secret has come to. */
export type SessionLookup =
  | { readonly kind: 'session'; readonly session: ProviderSession }
  /** The Secret cannot be used. While an earlier content of it still serves, `lastGood` is that session. */
  | {
      readonly kind: 'invalid';
      readonly reason: SecretProblem | 'APIServiceBindingInvalid';
      readonly message: string;
      readonly lastGood?: ProviderSession;
    }
  /** Not looked at yet. */
  | { readonly kind: 'pending' };

export type SecretProblem = 'KubeconfigSecretNotFound' | 'KubeconfigSecretInvalid';

/** The sessions that are open, by the Secrets that ask for them. */
export interface Sessions {
  lookup(ref: SecretKeyRef): SessionLookup;
  list(): Iterable<ProviderSession>;
  /** The Secrets (`namespace/name`) that a session serves now. */
  secretsOf(session: ProviderSession): ReadonlySet<string>;
  /** How the last heartbeat of a session went; undefined before the first. */
  heartbeat(session: ProviderSession): Heartbeat | undefined;
  /** Calls back with `namespace/name` of each Secret whose lookup, session state or heartbeat may have changed; returns the unsubscribe. */
  subscribe(listener: (secret: string) => void): () => void;
}

export type Heartbeat =
  | { readonly ok: true }
  /** `message` of the failed write or read. */
  | { readonly ok: false; readonly message: string };

/** What a binding's reference to a kubeconfig has come to. */
export function lookupOf(sessions: Sessions, { name, secretRef, unreadable }: BindingView): SessionLookup {
  if (unreadable === undefined) return sessions.lookup(secretRef);
  const message = `APIServiceBinding ${name} cannot be read: ${unreadable}. Nothing is bound by it; correct it, or delete it`;
  return { kind: 'invalid', reason: 'APIServiceBindingInvalid', message };
}

/** The session that serves a reference to a kubeconfig now: its own, or the last good one while the Secret cannot be used. */
export function servingSession(lookup: SessionLookup): ProviderSession | undefined {
  if (lookup.kind === 'session') return lookup.session;
  return lookup.kind === 'invalid' ? lookup.lastGood : undefined;
}
