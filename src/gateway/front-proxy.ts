import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { type KubeObject, keyOf } from '../api/object.ts';
import { configMaps } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { IdentityHeaders } from './caller.ts';

/** The ConfigMap in which API servers publish how they identify themselves to aggregated API servers. */
const source = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** How the API server proves that a call comes from it, and in which headers it names the user. */
export interface FrontProxy extends Projected {
  /** PEM of the certificate authorities (CAs) that sign the API server's client certificate; empty if there are none. */
  readonly authorities: string;
  /** Common names that the API server's client certificate may have; empty: any name. */
  readonly names: readonly string[];
  readonly headers: IdentityHeaders;
  /** Why no call can be trusted; undefined if the settings are safe. */
  readonly problem: string | undefined;
}

/** Watches the ConfigMap. The store has at most one object. */
export function openFrontProxy(cluster: Cluster): Store<FrontProxy> {
  const { namespace, name } = source;
  return cluster.watch({
    resource: configMaps,
    namespace,
    fieldSelector: `metadata.name=${name}`,
    project: readFrontProxy,
  }).store;
}

/** The current settings; undefined if the ConfigMap was not read yet, or does not exist. */
export const frontProxyOf = (store: Store<FrontProxy>): FrontProxy | undefined => store.get(keyOf(source));

/** A readiness check: why the gateway can trust no call; undefined if it can verify the API server. */
export function frontProxyProblem(store: Store<FrontProxy>): string | undefined {
  const settings = frontProxyOf(store);
  if (settings) return settings.problem;
  return `ConfigMap ${keyOf(source)} does not exist or was not read; check that it exists, and that the ServiceAccount of the gateway may watch it`;
}

function readFrontProxy(object: KubeObject): FrontProxy {
  const { metadata } = object;
  const data = own(object, 'data');
  const text = (key: string): string => {
    const value = own(data, key);
    return typeof value === 'string' ? value : '';
  };
  const authorities = text('requestheader-client-ca-file');
  const names = stringsIn(text('requestheader-allowed-names'));
  const headersOf = (key: string): string[] => (stringsIn(text(key)) ?? []).map((name) => name.toLowerCase());
  return {
    key: keyOf(metadata),
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    authorities,
    names: names ?? [],
    headers: {
      username: headersOf('requestheader-username-headers'),
      uid: headersOf('requestheader-uid-headers'),
      groups: headersOf('requestheader-group-headers'),
    },
    problem: problemOf(authorities, names, text('client-ca-file')),
  };
}

function problemOf(authorities: string, names: readonly string[] | undefined, clientAuthorities: string) {
  const where = `ConfigMap ${keyOf(source)}`;
  const trusted = certificatesIn(authorities);
  if (trusted.length === 0) {
    return `${where} has no certificate in requestheader-client-ca-file, so no call can be proved to come from the API server; enable the aggregation layer (--requestheader-client-ca-file of the API server)`;
  }
  if (names === undefined)
    return `${where}: requestheader-allowed-names is not a JSON list of strings; set --requestheader-allowed-names of the API server, such as front-proxy-client`;
  const issuesUsers = certificatesIn(clientAuthorities).some((user) =>
    trusted.some((authority) => isSameKey(user, authority) || user.verify(authority.publicKey)),
  );
  if (names.length > 0 || !issuesUsers) return undefined;
  return (
    `${where}: requestheader-allowed-names is empty, and an authority of requestheader-client-ca-file also signs certificates of users, so any ` +
    'user could pose as the API server; set --requestheader-allowed-names of the API server, such as front-proxy-client'
  );
}

/** Two CAs with the same key verify the same certificates, even if the certificates of the CAs differ. */
const isSameKey = (a: X509Certificate, b: X509Certificate): boolean => a.publicKey.equals(b.publicKey);

/** The strings of a JSON list; an empty list if the text is empty; undefined if the text is anything else. */
function stringsIn(text: string): string[] | undefined {
  if (text === '') return [];
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined;
  } catch {
    return undefined;
  }
}

function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** By connection: the CAs (PEM) with which TLS verified the certificate of the peer. */
const verifiedBy = new WeakMap<TLSSocket, string>();

/** Records the settings with which TLS verified the certificate of the peer. Call it after each handshake. */
export function recordHandshake(socket: TLSSocket, settings: FrontProxy | undefined): void {
  verifiedBy.set(socket, settings?.authorities ?? '');
}

/**
 * Whether the peer of the connection has proved that it is the API server: by a certificate that the current CAs signed, with an allowed
 * common name. Requires the certificate itself, because Node reports a connection without a certificate as authorized if the connection
 * resumes a session of TLS 1.3 (nodejs/node#35317).
 */
export function isApiServer(socket: TLSSocket, { authorities, names, problem }: FrontProxy): boolean {
  if (problem !== undefined || !socket.authorized || verifiedBy.get(socket) !== authorities) return false;
  if (!socket.getPeerX509Certificate()) return false;
  const commonName: unknown = socket.getPeerCertificate().subject?.CN;
  return names.length === 0 || (typeof commonName === 'string' && names.includes(commonName));
}
