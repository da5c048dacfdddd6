import type { RunExtension } from '../../api/inventory/contract/report.ts';
import { callbackPath, type ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { clusterInventories, kubeconfigKey, kubeconfigSecretName } from '../../api/inventory/names.ts';
import type { KubeObject, ObjectName } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { CodedError, quote } from '../../kit/errors.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { groupPath, resourcePath } from '../../kube/api-paths.ts';
import { TransportError } from '../../kube/errors.ts';
import { type JsonAnswer, JsonCaller, type JsonRequest } from '../../kube/json-call.ts';
import { textOf } from '../../kube/status-error.ts';
import type { EntryAccessor, ReportAnswer } from '../ports.ts';
import type { RunTransports } from './run.ts';

/** Configured addresses of a component. The component server rejects requests with other addresses, so runs send tokens only to these. */
export interface Addresses {
  /** URL of the API server without a trailing slash. */
  readonly apiUrl: string;
  /** PEM of the CA; undefined: the public CAs. */
  readonly apiCa: string | undefined;
  /** URL for reports without a trailing slash. */
  readonly callbackUrl: string;
}

const name = '[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?';
const entryPath = new RegExp(
  `^${groupPath(clusterInventories)}/namespaces/(?<namespace>${name})/${clusterInventories.plural}/(?<name>${name})$`,
);

/** Namespace and name of the entry in a URL; undefined if the URL is not an entry below `apiUrl`. */
export function entryAt(apiUrl: string, url: string): Required<ObjectName> | undefined {
  if (!url.startsWith(`${apiUrl}/`)) return undefined;
  const { namespace, name } = entryPath.exec(url.slice(apiUrl.length))?.groups ?? {};
  return namespace && name ? { namespace, name } : undefined;
}

/** Why the component must reject a request with other addresses than the configured ones; undefined if they match. */
export function addressViolation(
  { entry, auth, callback, run }: ReconcileRequest,
  configured: Addresses,
): string | undefined {
  if (!entryAt(configured.apiUrl, entry.url))
    return `entry.url is ${quote(entry.url, 128)}, which is not an entry below the configured URL ${configured.apiUrl}`;
  if (auth.ca?.trim() !== configured.apiCa?.trim())
    return 'auth.ca differs from the CA that this component is configured with';
  const expected = `${configured.callbackUrl}${callbackPath}${run.id}`;
  return callback === expected ? undefined : `callback is ${quote(callback, 128)}, not ${quote(expected, 256)}`;
}

interface HttpTransports extends RunTransports {
  close(): void;
}

/**
 * Connects a component to the API server and the callbacks over HTTP or HTTPS. `callbackCa`: PEM; undefined: the public CAs. Each call
 * times out after 10 s. A callback's answer other than 200, 400, 401, 403, and 409 counts as 503, so the component reports again.
 */
export function httpTransports(
  addresses: Addresses & { readonly callbackCa: string | undefined },
  clock: Clock,
): HttpTransports {
  const { apiUrl, apiCa, callbackCa } = addresses;
  const api = new JsonCaller(apiCa === undefined ? {} : { ca: apiCa }, clock);
  const callbacks = new JsonCaller(callbackCa === undefined ? {} : { ca: callbackCa }, clock);
  return {
    openEntry: (request, token, signal) => entryAccessor(api, apiUrl, request, token, signal),
    report: async (request: ReconcileRequest, token, body, signal) => {
      const headers = { authorization: `Bearer ${token}` };
      return readAnswer(
        await callbacks.call({ method: 'POST', url: new URL(request.callback), headers, body, signal }),
      );
    },
    close: () => {
      api.close();
      callbacks.close();
    },
  };
}

function readAnswer({ status, body: bytes }: JsonAnswer): ReportAnswer {
  const body = parsed(bytes);
  if (status === 200) return { status, extension: extensionIn(body) };
  const message = own(body, 'message');
  const text = typeof message === 'string' ? message : `the callback answered with status ${status}`;
  switch (status) {
    case 400:
      return { status, code: 'InvalidReport', message: text };
    case 401:
    case 403:
      return { status: 403, code: 'ForeignCredential', message: text };
    case 409:
      return { status, code: 'RunOver', message: text };
    default:
      return { status: 503, code: 'Unavailable', message: text };
  }
}

function extensionIn(body: unknown): RunExtension | undefined {
  const [leaseSeconds, auth] = [own(body, 'leaseSeconds'), own(body, 'auth')];
  if (typeof leaseSeconds !== 'number') return undefined;
  const [token, expires] = [own(auth, 'token'), own(auth, 'expires')];
  if (typeof token !== 'string' || typeof expires !== 'string') return { leaseSeconds };
  return { leaseSeconds, auth: { token, expires } };
}

function parsed(body: Buffer): unknown {
  try {
    return parseJson(body);
  } catch (cause) {
    if (body.length === 0) return undefined;
    throw new TransportError('the answer of the callback is not JSON', cause, false);
  }
}

/**
 * Accesses the entry of a request with the current token. Rejects with ApiError and TransportError like the client of kube/. A 401,
 * or a 403 with the code `NoSuchRun` in its message, means that the run has ended. Another 403 means that a permission is missing or a rule
 * is broken. Throws CodedError `ForeignEntry` if the URL is not that of an entry below `apiUrl`.
 */
function entryAccessor(
  caller: JsonCaller,
  apiUrl: string,
  { entry }: ReconcileRequest,
  token: () => string,
  signal: AbortSignal,
): EntryAccessor {
  const entryName = entryAt(apiUrl, entry.url);
  if (!entryName) throw new CodedError('ForeignEntry', `entry.url is not an entry below ${apiUrl}`);
  const call = async ({
    url,
    ...wanted
  }: Pick<JsonRequest, 'method' | 'body'> & { readonly url: string }): Promise<KubeObject> => {
    const answer = await caller.call({
      ...wanted,
      url: new URL(url),
      headers: { authorization: `Bearer ${token()}` },
      contentType: 'application/merge-patch+json',
      signal,
    });
    return readObject(textOf(answer));
  };
  const secretUrl = (name: string): string => `${apiUrl}${resourcePath(secrets, { ...entryName, name })}`;
  const kubeconfig = secretUrl(kubeconfigSecretName(entry.id));
  return {
    get: () => call({ method: 'GET', url: entry.url }),
    patch: (patch) => call({ method: 'PATCH', url: `${entry.url}/status`, body: patch }),
    kubeconfig: () => call({ method: 'GET', url: kubeconfig }),
    writeKubeconfig: (text) => {
      const data = { [kubeconfigKey]: Buffer.from(text, 'utf8').toString('base64') };
      return call({ method: 'PATCH', url: kubeconfig, body: { data } });
    },
    secret: (name) => call({ method: 'GET', url: secretUrl(name) }),
  };
}

function readObject(text: string): KubeObject {
  let object: unknown;
  try {
    object = JSON.parse(text);
  } catch {
    object = undefined;
  }
  if (isRecord(object) && isRecord(object['metadata'])) return object as unknown as KubeObject;
  throw new TransportError('the answer of the API server is not a Kubernetes object', undefined, false);
}
