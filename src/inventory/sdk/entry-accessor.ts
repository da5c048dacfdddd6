import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import { kubeconfigKey, kubeconfigSecretName } from '../../api/inventory/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { secrets } from '../../api/resources.ts';
import { CodedError } from '../../kit/errors.ts';
import { isRecord } from '../../kit/json-value.ts';
import { resourcePath } from '../../kube/api-paths.ts';
import { TransportError } from '../../kube/errors.ts';
import { toApiError } from '../../kube/status-error.ts';
import type { EntryAccessor } from '../ports/component.ts';
import { entryAt } from './addresses.ts';
import type { JsonCall, JsonCaller } from './json-calls.ts';

/**
 * The entry of a request at the API server, with the token that is current at each call. Rejects with ApiError and TransportError, as
 * the client of kube/ does; a 401 or 403 means that the run is over. Throws CodedError `ForeignEntry` for a request of another server.
 */
export function entryAccessor(
  caller: JsonCaller,
  apiUrl: string,
  { entry }: ReconcileRequest,
  token: () => string,
  signal: AbortSignal,
): EntryAccessor {
  const at = entryAt(apiUrl, entry.url);
  if (!at) throw new CodedError('ForeignEntry', `the entry is not one below ${apiUrl}`);
  const call = async (wanted: Pick<JsonCall, 'method' | 'url' | 'body'>): Promise<KubeObject> => {
    const { status, retryAfter, text } = await caller.call({
      ...wanted,
      headers: { authorization: `Bearer ${token()}` },
      contentType: 'application/merge-patch+json',
      signal,
    });
    if (status < 200 || status > 299) throw toApiError(status, retryAfter, text);
    return readObject(text);
  };
  const secretUrl = (name: string): string => `${apiUrl}${resourcePath(secrets, { ...at, name })}`;
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
