import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { type KubeObject, keyOf } from '../api/object.ts';
import { configMaps } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { IdentityHeaders } from './caller.ts';

/** Here API servers publish how aggregated API servers can know them. */
const source = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** How the API server proves that a call comes from it, and where it names the user. */
export interface FrontProxy extends Projected {
  /** PEM of the certificate authorities (CAs) of the API server's client certificate, if any. */
  readonly authorities: string;
  /** Common names that the certificate may have; empty: any. */
  readonly names: readonly string[];
  readonly headers: IdentityHeaders;
  /** Why no call can be trusted; absent if the settings are safe. */
  readonly problem: string | undefined;
}

/** The store has at most one object. */
export function openFrontProxy(cluster: Cluster): Store<FrontProxy> {
  const { namespace, name } = source;
  return cluster.watch({
    resource: configMaps,
    namespace,
    fieldSelector: `metadata.name=${name}`,
    project: readFrontProxy,
  }).store;
}

/** Nothing before the ConfigMap was read. */
export const frontProxyOf = (store: Store<FrontProxy>): FrontProxy | undefined => store.get(keyOf(source));

/** A readiness check: why the gateway can trust no call. */
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

/** Such CAs verify the same certificates, even if their own certificates differ. */
const isSameKey = (a: X509Certificate, b: X509Certificate): boolean => a.publicKey.equals(b.publicKey);

/** Empty text is an empty list; text other than a JSON list of strings is nothing. */
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

/** By connection: the CAs with which TLS verified the certificate of the peer. */
const verifiedBy = new WeakMap<TLSSocket, string>();

/** Call it after each handshake. */
export function recordHandshake(socket: TLSSocket, settings: FrontProxy | undefined): void {
  verifiedBy.set(socket, settings?.authorities ?? '');
}

/**
 * The peer has proved that it is the API server: the current CAs signed its certificate, with an
 * allowed common name. Requires the certificate, because Node calls a resumed TLS 1.3 connection
 * without one authorized (nodejs/node#35317).
 */
export function isApiServer(socket: TLSSocket, { authorities, names, problem }: FrontProxy): boolean {
  if (problem !== undefined || !socket.authorized || verifiedBy.get(socket) !== authorities) return false;
  if (!socket.getPeerX509Certificate()) return false;
  const commonName: unknown = socket.getPeerCertificate().subject?.CN;
  return names.length === 0 || (typeof commonName === 'string' && names.includes(commonName));
}
