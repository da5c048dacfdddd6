import { existsSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import type { Tls } from './http.ts';
import type { Credentials } from './kubernetes.ts';
import { CodedError, isRecord, listIn, own, quote } from './values.ts';

const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';

/** From a kubeconfig with inline credentials, or in a Pod from its ServiceAccount. */
export function ownCredentials(kubeconfigFile: string | undefined): Credentials {
  if (kubeconfigFile) return inlineCredentials(readFileSync(kubeconfigFile, 'utf8'));
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = process.env;
  if (!host || !existsSync(`${mounted}/token`)) {
    const message =
      'no credentials: KUBECONFIG is not set, and this is not a Pod with a ServiceAccount; set KUBECONFIG';
    throw new CodedError('NoCredentials', message);
  }
  return {
    // As the server finds it, so that both have the same URL.
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    tls: { ca: readFileSync(`${mounted}/ca.crt`, 'utf8') },
    token: () => readFileSync(`${mounted}/token`, 'utf8').trim(),
  };
}

const maxCharacters = 1024 * 1024;

/**
 * They would let the author of the text make this process read files, run programs, use a proxy,
 * skip TLS verification, or impersonate. Passwords are not supported.
 */
const forbiddenInCluster = ['certificate-authority', 'proxy-url', 'insecure-skip-tls-verify'];
const forbiddenInUser = [
  'exec',
  'auth-provider',
  'tokenFile',
  'token-file',
  'client-certificate',
  'client-key',
  'username',
  'password',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
];

/**
 * From an untrusted kubeconfig: an https server, inline CA, inline token or client certificate.
 * Throws CodedError `KubeconfigInvalid`, or `KubeconfigForbidden`, which names the field. No
 * message has credentials.
 */
export function inlineCredentials(text: string): Credentials {
  const document = parse(text);
  const context = entryOf(document, 'contexts', string(document, 'current-context') ?? '', 'context');
  const cluster = entryOf(document, 'clusters', string(context, 'cluster') ?? '', 'cluster');
  const user = entryOf(document, 'users', string(context, 'user') ?? '', 'user');
  forbidFields(cluster, forbiddenInCluster, 'cluster');
  forbidFields(user, forbiddenInUser, 'user');
  const token = string(user, 'token')?.trim();
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw invalid('token contains characters that an HTTP header may not have');
  return { server: serverOf(cluster), tls: tlsOf(cluster, user), token: () => token };
}

function parse(text: string): object {
  if (text.length > maxCharacters) throw invalid(`it is longer than ${maxCharacters} characters`);
  let document: unknown;
  try {
    document = load(text);
  } catch {
    // Without the parser's message, which quotes the text around the fault; that may be a token.
    throw invalid('it is not YAML');
  }
  if (!isRecord(document)) throw invalid('it is not a YAML mapping');
  return document;
}

function entryOf(document: object, list: string, name: string, kind: string): object {
  const found = own(
    listIn(document, list).find((entry) => own(entry, 'name') === name),
    kind,
  );
  if (isRecord(found)) return found;
  throw invalid(`${kind} ${quote(name)} is not in ${list}`);
}

function serverOf(cluster: object): string {
  const server = string(cluster, 'server') ?? '';
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url) throw invalid('server is not a URL; it must begin with https://');
  if (url.protocol !== 'https:') throw forbidden('cluster', 'server', 'it must begin with https://');
  if (url.username || url.password || url.search || url.hash)
    throw forbidden('cluster', 'server', 'it must not have a user, query, or fragment');
  return server.replace(/\/+$/, '');
}

function tlsOf(cluster: object, user: object): Tls {
  const ca = pem(cluster, 'certificate-authority-data');
  const cert = pem(user, 'client-certificate-data');
  const key = pem(user, 'client-key-data');
  const servername = string(cluster, 'tls-server-name');
  if ((cert === undefined) !== (key === undefined))
    throw invalid('client-certificate-data and client-key-data must be set together');
  return {
    ...(ca ? { ca } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
    ...(servername ? { servername } : {}),
  };
}

function pem(from: object, name: string): string | undefined {
  const data = string(from, name);
  if (!data) return undefined;
  const decoded = Buffer.from(data, 'base64').toString('latin1');
  if (!decoded.includes('-----BEGIN ')) throw invalid(`${name} is not base64 of a PEM text`);
  return decoded;
}

const remedies = {
  cluster: 'remove it; to trust a private CA, set certificate-authority-data',
  user: 'remove it, and set token, or client-certificate-data and client-key-data',
};

function forbidFields(from: object, fields: readonly string[], section: 'cluster' | 'user'): void {
  for (const name of fields) {
    // client-go writes these for an unset field.
    if ([undefined, null, '', false].includes(own(from, name) as undefined)) continue;
    throw forbidden(section, name, remedies[section]);
  }
}

/** Null counts as absent. Throws `KubeconfigInvalid` for another type. */
function string(from: object, name: string): string | undefined {
  const value = own(from, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw invalid(`${name} is not a string`);
}

const invalid = (why: string): CodedError => new CodedError('KubeconfigInvalid', `invalid kubeconfig: ${why}`);
const forbidden = (section: string, name: string, why: string): CodedError =>
  new CodedError('KubeconfigForbidden', `kubeconfig: ${name} of the ${section} is not allowed here: ${why}`);
