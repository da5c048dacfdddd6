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
import type { ClusterTls } from '../../kube/credentials.ts';
import { TransportError } from '../../kube/errors.ts';
import { type JsonAnswer, JsonCaller, type JsonRequest } from '../../kube/json-call.ts';
import { successText } from '../../kube/status-error.ts';
import type { EntryAccessor, ReportAnswer } from '../ports.ts';
import type { RunTransports } from './run.ts';

/** Configured: the server of a component rejects other addresses, so runs send tokens only here. */
export interface Addresses {
  /** Without a trailing slash. */
  readonly apiUrl: string;
  /** PEM. Default: the public CAs. */
  readonly apiCa: string | undefined;
  /** Without a trailing slash. */
  readonly callbackUrl: string;
}

const namePattern = '[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?';
const inventoryPath = groupPath(clusterInventories).replaceAll('.', '\\.');
const entryPathPattern = new RegExp(
  `^${inventoryPath}/namespaces/(?<namespace>${namePattern})/${clusterInventories.plural}/(?<name>${namePattern})$`,
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

interface HttpTransports extends RunTransports {
  /** Aborts calls in flight, and accepts no more. */
  close(): void;
}

interface HttpTransportOptions extends Pick<Addresses, 'apiUrl'> {
  /** Calls authenticate with the token of the run, so this has no client certificate. */
  readonly apiTls: Omit<ClusterTls, 'cert' | 'key'>;
  /** PEM. Default: the public CAs. */
  readonly callbackCa: string | undefined;
}

/**
 * Connects a component to the API server and the callbacks, whose addresses `addressViolation` has
 * checked. A call times out after 10 s; an answer has at most 3 MiB. `report` maps 401 to 403, 413
 * to 400, and unexpected statuses to 503. It rejects with TransportError if the answer is
 * incomplete or not JSON, such as a proxy's page. `Run` repeats a report after a 503 or a
 * rejection.
 */
export function httpTransports({ apiUrl, apiTls, callbackCa }: HttpTransportOptions, clock: Clock): HttpTransports {
  const api = new JsonCaller(apiTls, clock);
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

function readAnswer(answer: JsonAnswer): ReportAnswer {
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

function parseBody({ status, body }: JsonAnswer): unknown {
  if (body.length === 0) return undefined;
  try {
    return parseJson(body);
  } catch (cause) {
    const message = `the callback answered with status ${status} and a body that cannot be parsed as JSON; check that the callback URL leads to the server and not to a proxy`;
    throw new TransportError(message, cause, false);
  }
}

/** Throws CodedError `ForeignEntry` if the URL is not that of an entry below `apiUrl`. */
function entryAccessor(
  caller: JsonCaller,
  apiUrl: string,
  { entry }: ReconcileRequest,
  token: () => string,
  signal: AbortSignal,
): EntryAccessor {
  const entryName = entryNameIn(apiUrl, entry.url);
  if (!entryName) throw new CodedError('ForeignEntry', foreignEntry(entry.url, apiUrl));
  const call = async ({ url, method, body }: EntryCall): Promise<KubeObject> => {
    const answer = await caller.call({
      method,
      body,
      url: new URL(url),
      headers: { authorization: `Bearer ${token()}` },
      contentType: 'application/merge-patch+json',
      signal,
    });
    return readObject(successText(answer));
  };
  const secretUrl = (name: string): string => `${apiUrl}${resourcePath(secrets, { ...entryName, name })}`;
  const kubeconfigUrl = secretUrl(kubeconfigSecretName(entry.id));
  return {
    get: () => call({ method: 'GET', url: entry.url }),
    patch: (patch) => call({ method: 'PATCH', url: `${entry.url}/status`, body: patch }),
    kubeconfig: () => call({ method: 'GET', url: kubeconfigUrl }),
    writeKubeconfig: (text) => {
      const data = { [kubeconfigKey]: Buffer.from(text, 'utf8').toString('base64') };
      return call({ method: 'PATCH', url: kubeconfigUrl, body: { data } });
    },
    secret: (name) => call({ method: 'GET', url: secretUrl(name) }),
  };
}

interface EntryCall extends Pick<JsonRequest, 'method' | 'body'> {
  readonly url: string;
}

/** Not `parseJson`: an object that the API server stores may exceed its limits. */
function readObject(text: string): KubeObject {
  let cause: unknown;
  try {
    const object: unknown = JSON.parse(text);
    if (isRecord(object) && isRecord(object['metadata'])) return object as unknown as KubeObject;
  } catch (error) {
    cause = error;
  }
  throw new TransportError(
    'the answer is not a Kubernetes object; check that the URL of the entry leads to the API server and not to a proxy',
    cause,
    false,
  );
}
