import { CodedError, quote } from '../kit/errors.ts';
import { isRecord, listIn, own } from '../kit/json-value.ts';
import { type ClusterTls, type Credentials, staticCredentials } from './credentials.ts';
import { loadYaml } from './yaml.ts';

export interface InlineCredentials extends Credentials {
  readonly context: string;
}

const MAX_CHARACTERS = 1024 * 1024;

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
 * Rejects with CodedError `KubeconfigInvalid`, `KubeconfigContextNotFound`, `KubeconfigForbidden`
 * (names the field), or `InvalidTlsData`. No message has credentials.
 */
export async function inlineCredentials(text: string): Promise<InlineCredentials> {
  const document = parse(text);
  const context = string(document, 'current-context') ?? '';
  const entry = findEntry(document, 'contexts', context, 'context');
  if (!entry) {
    const message = `current context ${quote(context)} not found; set current-context to the name of one of contexts`;
    throw new CodedError('KubeconfigContextNotFound', message);
  }
  const cluster = requiredEntry(document, 'clusters', entry, 'cluster');
  const user = requiredEntry(document, 'users', entry, 'user');
  forbidFields(cluster, forbiddenInCluster, 'cluster');
  forbidFields(user, forbiddenInUser, 'user');
  const token = string(user, 'token');
  const namespace = string(entry, 'namespace');
  const credentials = staticCredentials({
    server: serverOf(cluster),
    tls: tlsOf(cluster, user),
    ...(namespace ? { namespace } : {}),
    ...(token ? { token: headerSafe(token) } : {}),
  });
  return { ...credentials, context };
}

function parse(text: string): object {
  if (text.length > MAX_CHARACTERS) throw invalid(`it is longer than ${MAX_CHARACTERS} characters`);
  let document: unknown;
  try {
    document = loadYaml(text);
  } catch {
    // Without the parser's message, which quotes the text around the fault; that may be a token.
    throw invalid('it is not YAML');
  }
  if (!isRecord(document)) throw invalid('it is not a YAML mapping');
  return document;
}

function serverOf(cluster: object): string {
  const server = string(cluster, 'server') ?? '';
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url) throw invalid('server is not a URL; it must begin with https://');
  if (url.protocol !== 'https:') throw forbidden('cluster', 'server', 'it must begin with https://');
  if (url.username || url.password || url.search || url.hash) {
    throw forbidden('cluster', 'server', 'it must not have a user, query, or fragment');
  }
  return server;
}

function tlsOf(cluster: object, user: object): ClusterTls {
  const ca = pem(cluster, 'certificate-authority-data');
  const cert = pem(user, 'client-certificate-data');
  const key = pem(user, 'client-key-data');
  const servername = string(cluster, 'tls-server-name');
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid('client-certificate-data and client-key-data must be set together');
  }
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

/** Trims the token. Throws `KubeconfigInvalid` if an HTTP header cannot have it. */
function headerSafe(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token.trim())) return token.trim();
  throw invalid('token contains characters that an HTTP header may not have');
}

function forbidFields(from: object, fields: readonly string[], section: 'cluster' | 'user'): void {
  for (const name of fields) {
    const value = own(from, name);
    // client-go writes these for an unset field.
    if (value === undefined || value === null || value === '' || value === false) continue;
    throw forbidden(section, name, remedies[section]);
  }
}

/** Throws `KubeconfigInvalid` if there is none. */
function requiredEntry(document: object, list: string, context: object, kind: 'cluster' | 'user'): object {
  const name = string(context, kind) ?? '';
  const found = findEntry(document, list, name, kind);
  if (!found) throw invalid(`${kind} ${quote(name)} of the current context is not in ${list}`);
  return found;
}

function findEntry(document: object, list: string, name: string, kind: string): object | undefined {
  const entry = listIn(document, list).find((candidate) => own(candidate, 'name') === name);
  const value = own(entry, kind);
  return isRecord(value) ? value : undefined;
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
