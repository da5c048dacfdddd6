import { createSecureContext } from 'node:tls';
import { CodedError } from '../kit/errors.ts';

/** PEM texts and checks of the TLS connection; absent fields mean the platform's default. */
export interface ClusterTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Name to verify in the server's certificate, if it differs from the host of the URL. */
  readonly servername?: string;
  /** False skips the verification of the server; for throwaway clusters only. */
  readonly rejectUnauthorized?: boolean;
}

/** Certificates and headers of one connection or call. */
export interface Material {
  readonly tls: ClusterTls;
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How to reach one cluster as one identity. */
export interface Credentials {
  /** `https://host:port[/prefix]`, no slash at the end. */
  readonly server: string;
  /** Namespace of the kubeconfig context. */
  readonly namespace?: string;
  /**
   * The current certificates and headers. Reads token files again, and runs exec plugins again once their answer has expired.
   * Call it as often as needed; equal contents mean no change.
   */
  material(): Promise<Material>;
}

export interface StaticCredentials {
  readonly server: string;
  readonly namespace?: string;
  readonly token?: string;
  readonly tls?: ClusterTls;
}

/** Credentials that never change. Rejects a key that does not belong to its certificate: CodedError `InvalidTlsData`. */
export function staticCredentials({ server, namespace, token, tls = {} }: StaticCredentials): Credentials {
  checkTls(tls);
  const headers: Record<string, string> = {};
  if (token !== undefined) headers['authorization'] = `Bearer ${token.trim()}`;
  const material = { tls, headers };
  return {
    server: server.replace(/\/+$/, ''),
    ...(namespace === undefined ? {} : { namespace }),
    material: () => Promise.resolve(material),
  };
}

function checkTls(tls: ClusterTls): void {
  try {
    createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  } catch (cause) {
    throw new CodedError('InvalidTlsData', 'the CA, client certificate, and client key do not match', {
      cause,
    });
  }
}
