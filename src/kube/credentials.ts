import { createSecureContext } from 'node:tls';
import { CodedError } from '../kit/errors.ts';

/** Certificates are PEM. An absent field takes Node's default. */
export interface ClusterTls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** To verify in the server's certificate, instead of the host of the URL. */
  readonly servername?: string;
  /** `false` skips the verification of the server; for test clusters only. */
  readonly rejectUnauthorized?: boolean;
  /**
   * URL of an HTTP or HTTPS proxy (CONNECT), perhaps with user and password. Take it only from this
   * program's own user, never from an untrusted kubeconfig.
   */
  readonly proxy?: string;
}

export interface ConnectionAuth {
  readonly tls: ClusterTls;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

export interface Credentials {
  /** `https://host:port[/prefix]`, no slash at the end. */
  readonly server: string;
  readonly namespace?: string;
  /** For every request: token files are read again after a minute, exec plugins run on expiry. */
  connectionAuth(): Promise<ConnectionAuth>;
}

export interface StaticCredentials {
  readonly server: string;
  readonly namespace?: string;
  /** Bearer token. Default: no Authorization header. */
  readonly token?: string;
  readonly tls?: ClusterTls;
}

/** Throws CodedError `InvalidTlsData` for an invalid certificate or key. Does not check the CA. */
export function staticCredentials({ server, namespace, token, tls = {} }: StaticCredentials): Credentials {
  checkTls(tls);
  const connectionAuth: ConnectionAuth = { tls, headers: token === undefined ? {} : bearer(token) };
  return {
    server: server.replace(/\/+$/, ''),
    ...(namespace === undefined ? {} : { namespace }),
    connectionAuth: () => Promise.resolve(connectionAuth),
  };
}

/** Only the token authenticates; server and proxy stay. */
export function withToken({ server, connectionAuth }: Credentials, token: string): Credentials {
  return {
    server,
    connectionAuth: async () => {
      const { tls } = await connectionAuth();
      return { tls: withoutClientCertificate(tls), headers: bearer(token) };
    },
  };
}

/** Server and proxy stay. */
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
