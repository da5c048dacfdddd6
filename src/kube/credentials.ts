import { createSecureContext } from 'node:tls';
import { CodedError } from '../kit/errors.ts';

/** Certificates (PEM) and settings of the TLS connections to one cluster. An absent field takes Node's default. */
export interface ClusterTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Name to verify in the server's certificate, if it differs from the host of the URL. */
  readonly servername?: string;
  /** `false` disables server certificate verification; for test clusters only. Default true. */
  readonly rejectUnauthorized?: boolean;
  /**
   * URL of an HTTP or HTTPS proxy to connect through (CONNECT), with user and password if the proxy needs them. Default: no proxy. Take it
   * only from the kubeconfig of the user who runs this program, never from an untrusted kubeconfig.
   */
  readonly proxy?: string;
}

/** What authenticates one connection or call. */
export interface ConnectionAuth {
  readonly tls: ClusterTls;
  /** Authorization and impersonation headers. */
  readonly headers: Readonly<Record<string, string | string[]>>;
}

/** The server of one cluster, and the authentication as one user. */
export interface Credentials {
  /** `https://host:port[/prefix]`, no slash at the end. */
  readonly server: string;
  /** Namespace of the kubeconfig context. */
  readonly namespace?: string;
  /**
   * The current certificates and headers. Token files are read again after one minute, and exec plugins run again once their credential
   * has expired. Callers may call it for every request: an equal result means no change. Rejects if a file or plugin fails.
   */
  connectionAuth(): Promise<ConnectionAuth>;
}

/** Input of `staticCredentials`. */
export interface StaticCredentials {
  readonly server: string;
  readonly namespace?: string;
  /** Bearer token. Default: the calls have no Authorization header. */
  readonly token?: string;
  readonly tls?: ClusterTls;
}

/**
 * Credentials that never change. Throws CodedError `InvalidTlsData` if the client certificate or its key cannot be read, or if they do not
 * match. It does not check the CA.
 */
export function staticCredentials({ server, namespace, token, tls = {} }: StaticCredentials): Credentials {
  checkTls(tls);
  const connectionAuth: ConnectionAuth = { tls, headers: token === undefined ? {} : bearer(token) };
  return {
    server: server.replace(/\/+$/, ''),
    ...(namespace === undefined ? {} : { namespace }),
    connectionAuth: () => Promise.resolve(connectionAuth),
  };
}

/** Credentials that authenticate with the token only, and connect like `credentials`: to the same server, through the same proxy. */
export function withToken({ server, connectionAuth }: Credentials, token: string): Credentials {
  return {
    server,
    connectionAuth: async () => {
      const { tls } = await connectionAuth();
      return { tls: withoutClientCertificate(tls), headers: bearer(token) };
    },
  };
}

/** The settings without the client certificate and its key: they connect to the same server, through the same proxy. */
export function withoutClientCertificate({
  cert: _cert,
  key: _key,
  ...tls
}: ClusterTls): Omit<ClusterTls, 'cert' | 'key'> {
  return tls;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token.trim()}` });

function checkTls(tls: ClusterTls): void {
  try {
    createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  } catch (cause) {
    throw new CodedError(
      'InvalidTlsData',
      'the client certificate and its key are unusable; they must be PEM, and the key must be that of the certificate',
      { cause },
    );
  }
}
