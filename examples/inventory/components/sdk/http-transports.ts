import {
  callbackPath,
  type EntryAccessor,
  kubeconfigKey,
  kubeconfigSecretName,
  type ReconcileRequest,
  type RunExtension,
} from './contract.ts';
import { type Answer, call, type Tls, TransportError } from './http.ts';
import { clusterInventories, mergePatchType, type ObjectName, objectIn, resourcePath, secrets } from './kubernetes.ts';
import type { ReportAnswer, RunTransports } from './run.ts';
import { CodedError, own, quote } from './values.ts';

/** Configured: the server of a component rejects other addresses, so runs send tokens only here. */
export interface Addresses {
  /** Without a trailing slash. */
  readonly apiUrl: string;
  /** PEM. Default: the public CAs. */
  readonly apiCa: string | undefined;
  /** Without a trailing slash. */
  readonly callbackUrl: string;
}

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

/** Throws CodedError `InsecureAddress` for plain HTTP to another host: tokens would be readable. */
export function requireEncryption(addresses: Addresses): void {
  for (const field of ['apiUrl', 'callbackUrl'] as const) {
    const address = addresses[field];
    const { protocol, hostname } = URL.canParse(address) ? new URL(address) : { protocol: '', hostname: '' };
    if (protocol === 'https:' || (protocol === 'http:' && loopback.test(hostname))) continue;
    const allowed = 'allowed are https URLs, and http only for loopback addresses; use https';
    throw new CodedError('InsecureAddress', `${field} is ${quote(address, 128)}; ${allowed}`);
  }
}

const namePattern = '[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?';
const { group, version, plural } = clusterInventories;
const entryPathPattern = new RegExp(
  `^/apis/${group.replaceAll('.', '\\.')}/${version}/namespaces/(?<namespace>${namePattern})/${plural}/(?<name>${namePattern})$`,
);

/** Undefined if the URL is not that of an entry below `apiUrl`. */
export function entryNameIn(apiUrl: string, url: string): Required<ObjectName> | undefined {
  if (!url.startsWith(`${apiUrl}/`)) return undefined;
  const { namespace, name } = entryPathPattern.exec(url.slice(apiUrl.length))?.groups ?? {};
  return namespace && name ? { namespace, name } : undefined;
}

/** Why the component must reject the request: its URLs or CA are not the configured ones. */
export function addressViolation(
  { entry, auth, callback, run }: ReconcileRequest,
  configured: Addresses,
): string | undefined {
  if (!entryNameIn(configured.apiUrl, entry.url)) return foreignEntry(entry.url, configured.apiUrl);
  if (auth.ca?.trim() !== configured.apiCa?.trim())
    return `auth.ca differs from the CA in the configuration of this component; configure the component with the CA of the API server at ${configured.apiUrl}`;
  const expected = `${configured.callbackUrl}${callbackPath}${run.id}`;
  if (callback === expected) return undefined;
  return `callback is ${quote(callback, 128)}; this component accepts only ${quote(expected, 256)}; set --callback-url of the server to ${configured.callbackUrl}, or configure the component with the URL of the server`;
}

function foreignEntry(url: string, apiUrl: string): string {
  return `entry.url is ${quote(url, 128)}; this component accepts only entries below ${apiUrl}; set --component-api-url of the server to that URL, or configure the component with the URL of the server`;
}

interface HttpTransportOptions extends Pick<Addresses, 'apiUrl' | 'apiCa'> {
  /** PEM. Default: the public CAs. */
  readonly callbackCa: string | undefined;
}

/**
 * Connects a component to the API server and the callbacks, whose addresses `addressViolation` has
 * checked. `report` maps 401 to 403, 413 to 400, and unexpected statuses to 503. It rejects with
 * TransportError if the answer is incomplete or not JSON, such as a proxy's page; `Run` then
 * reports again, as after a 503.
 */
export function httpTransports({ apiUrl, apiCa, callbackCa }: HttpTransportOptions): RunTransports {
  return {
    openEntry: (request, token, signal) => entryAccessor(apiUrl, tlsOf(apiCa), request, token, signal),
    report: async (request, token, body, signal) => {
      const url = new URL(request.callback);
      return readAnswer(await call({ method: 'POST', url, token, tls: tlsOf(callbackCa), body, signal }));
    },
  };
}

const tlsOf = (ca: string | undefined): Tls => (ca === undefined ? {} : { ca });

function readAnswer(answer: Answer): ReportAnswer {
  const { status } = answer;
  const body = parseBody(answer);
  if (status === 200) return { status, extension: readExtension(body) };
  const message = own(body, 'message');
  const text = typeof message === 'string' ? message : `the callback answered with status ${status}`;
  switch (status) {
    case 400:
    case 413:
      // Repeating a report that is too large is useless.
      return { status: 400, code: 'InvalidReport', message: text };
    case 401:
    case 403:
      return { status: 403, code: 'ForeignCredential', message: text };
    case 409:
      return { status, code: own(body, 'code') === 'OutcomeDiffers' ? 'OutcomeDiffers' : 'RunOver', message: text };
    default:
      return { status: 503, code: 'Unavailable', message: text };
  }
}

function readExtension(body: unknown): RunExtension | undefined {
  const leaseSeconds = own(body, 'leaseSeconds');
  if (typeof leaseSeconds !== 'number') return undefined;
  const auth = own(body, 'auth');
  const token = own(auth, 'token');
  const expires = own(auth, 'expires');
  if (typeof token !== 'string' || typeof expires !== 'string') return { leaseSeconds };
  return { leaseSeconds, auth: { token, expires } };
}

function parseBody({ status, text }: Answer): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    const message = `the callback answered with status ${status} and a body that cannot be parsed as JSON; check that the callback URL leads to the server and not to a proxy`;
    throw new TransportError(message, { cause });
  }
}

/** Throws CodedError `ForeignEntry` if the URL is not that of an entry below `apiUrl`. */
function entryAccessor(
  apiUrl: string,
  tls: Tls,
  { entry }: ReconcileRequest,
  token: () => string,
  signal: AbortSignal,
): EntryAccessor {
  const entryName = entryNameIn(apiUrl, entry.url);
  if (!entryName) throw new CodedError('ForeignEntry', foreignEntry(entry.url, apiUrl));
  const get = async (url: string) =>
    objectIn(await call({ method: 'GET', url: new URL(url), token: token(), tls, signal }));
  const patch = async (url: string, body: object) => {
    const content = { body, contentType: mergePatchType };
    return objectIn(await call({ method: 'PATCH', url: new URL(url), token: token(), tls, signal, ...content }));
  };
  const { namespace } = entryName;
  const secretUrl = (name: string): string => `${apiUrl}${resourcePath(secrets, { namespace, name })}`;
  const kubeconfigUrl = secretUrl(kubeconfigSecretName(entry.id));
  return {
    get: () => get(entry.url),
    patch: (body) => patch(`${entry.url}/status`, body),
    kubeconfig: () => get(kubeconfigUrl),
    writeKubeconfig: (text) =>
      patch(kubeconfigUrl, { data: { [kubeconfigKey]: Buffer.from(text, 'utf8').toString('base64') } }),
    secret: async (name) => get(secretUrl(name)),
  };
}
