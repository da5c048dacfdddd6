import { type Answer, call, type Tls, TransportError } from './http.ts';
import { CodedError, isRecord, own, quote } from './values.ts';

/** As in `/apis/<group>/<version>/…/<plural>`. The core group is the empty string. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Without `namespace` for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    generation?: number;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: unknown;
  status?: unknown;
  [field: string]: unknown;
}

const resource = (group: string, version: string, plural: string, kind: string, namespaced = true): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced,
});

export const configMaps = resource('', 'v1', 'configmaps', 'ConfigMap');
export const deployments = resource('apps', 'v1', 'deployments', 'Deployment');
export const namespaces = resource('', 'v1', 'namespaces', 'Namespace', false);
export const secrets = resource('', 'v1', 'secrets', 'Secret');
export const serviceAccounts = resource('', 'v1', 'serviceaccounts', 'ServiceAccount');
export const clusterRoleBindings = resource(
  'rbac.authorization.k8s.io',
  'v1',
  'clusterrolebindings',
  'ClusterRoleBinding',
  false,
);
export const tokenReviews = resource('authentication.k8s.io', 'v1', 'tokenreviews', 'TokenReview', false);
export const clusterInventories = resource(
  'inventory.drawbridge.dev',
  'v1alpha1',
  'clusterinventories',
  'ClusterInventory',
);

/** `namespace/name`, or `name` for cluster-scoped objects. */
export const keyOf = ({ namespace, name }: ObjectName): string => (namespace ? `${namespace}/${name}` : name);

/** `apps/v1`, or `v1` for the core group. */
export const apiVersionOf = ({ group, version }: Resource): string => (group ? `${group}/${version}` : version);

interface Signaled {
  readonly signal?: AbortSignal;
}

/**
 * Calls the API server of one cluster. Rejects with ApiError, TransportError without a usable
 * answer, or the reason of the signal. Nothing is retried: the component answers `Retry` instead.
 */
export interface KubeClient {
  get(resource: Resource, name: ObjectName, options?: Signaled): Promise<KubeObject>;
  /** Of all namespaces. Rejects with TransportError beyond 16,777,216 characters. */
  list(resource: Resource, options?: Signaled): Promise<{ readonly items: readonly KubeObject[] }>;
  create(resource: Resource, object: KubeObject, options?: Signaled & { subresource?: string }): Promise<KubeObject>;
  /** RFC 7396. */
  mergePatch(resource: Resource, name: ObjectName, patch: unknown, options?: Signaled): Promise<KubeObject>;
  /** Does not wait for the end of the deletion. `absent` on 404. */
  delete(
    resource: Resource,
    name: ObjectName,
    options?: Signaled & { uid?: string },
  ): Promise<'absent' | 'deleted' | object>;
  /** TokenRequest. `expiresAt`: RFC 3339; the API server may choose another lifetime. */
  createToken(
    account: ObjectName,
    request: { expirationSeconds: number },
    options?: Signaled,
  ): Promise<{ token: string; expiresAt: string }>;
}

/** An answer of the API server other than 2xx. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const hasStatus = (error: unknown, status: number): boolean =>
  error instanceof Error && own(error, 'code') === status;
export const isForbidden = (error: unknown): boolean => hasStatus(error, 403);
export const isNotFound = (error: unknown): boolean => hasStatus(error, 404);

/** Nothing on 404. */
export async function findObject(
  client: Pick<KubeClient, 'get'>,
  resource: Resource,
  name: ObjectName,
  options: Signaled,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(resource, name, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

export interface Credentials {
  /** `https://host:port[/prefix]`, no slash at the end. */
  readonly server: string;
  readonly tls: Tls;
  /** Read for each call, because tokens of a mounted ServiceAccount change. */
  readonly token: () => string | undefined;
}

/** Of all pages of a list: an untrusted cluster may send pages without end. */
const maxListCharacters = 16 * 1024 * 1024;

export function connect({ server, tls, token }: Credentials): KubeClient {
  const exchange = (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    { signal }: Signaled,
    content: { readonly body?: unknown; readonly contentType?: string } = {},
  ): Promise<Answer> => call({ method, url: new URL(`${server}${path}`), tls, token: token(), signal, ...content });
  const send = async (...request: Parameters<typeof exchange>): Promise<KubeObject> =>
    objectIn(await exchange(...request));
  return {
    get: (resource, name, options = {}) => send('GET', resourcePath(resource, name), options),
    async list(resource, options = {}) {
      const path = resourcePath(resource, {});
      const items: KubeObject[] = [];
      let characters = 0;
      let next = '';
      do {
        const answer = await exchange('GET', `${path}?limit=500${next}`, options);
        const page = objectIn(answer);
        characters += answer.text.length;
        if (characters > maxListCharacters) {
          const found = `the pages of the list have ${characters} characters so far`;
          const problem = `${found}; at most ${maxListCharacters} are allowed; delete objects that are not needed`;
          throw new TransportError(`GET ${path}: ${problem}`);
        }
        items.push(...((page['items'] ?? []) as KubeObject[]));
        const token = own(page.metadata, 'continue');
        next = typeof token === 'string' && token !== '' ? `&continue=${encodeURIComponent(token)}` : '';
      } while (next !== '');
      return { items };
    },
    create: (resource, object, { subresource, ...options } = {}) => {
      const { namespace, name } = object.metadata;
      const path = resourcePath(resource, { namespace, ...(subresource === undefined ? {} : { name, subresource }) });
      return send('POST', path, options, { body: object });
    },
    mergePatch: (resource, name, patch, options = {}) =>
      send('PATCH', resourcePath(resource, name), options, { body: patch, contentType: mergePatchType }),
    async delete(resource, name, { uid, ...options } = {}) {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...(uid ? { preconditions: { uid } } : {}) };
      try {
        await send('DELETE', resourcePath(resource, name), options, { body });
        return 'deleted';
      } catch (error) {
        if (isNotFound(error)) return 'absent';
        throw error;
      }
    },
    async createToken(account, { expirationSeconds }, options = {}) {
      const path = resourcePath(serviceAccounts, { ...account, subresource: 'token' });
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds } };
      const { status } = await send('POST', path, options, { body });
      return { token: String(own(status, 'token')), expiresAt: String(own(status, 'expirationTimestamp')) };
    },
  };
}

export const mergePatchType = 'application/merge-patch+json';

interface PathTarget {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: string;
}

/** Without `name`: the collection. Throws CodedError `InvalidPathSegment`. */
export function resourcePath(resource: Resource, { namespace, name, subresource }: PathTarget): string {
  const { group, version, plural, namespaced } = resource;
  const path = [
    ...(group === '' ? ['api', version] : ['apis', group, version]),
    ...(namespaced && namespace !== undefined ? ['namespaces', namespace] : []),
    plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return path.map((part) => `/${segment(part)}`).join('');
}

/** Names come from untrusted objects: a slash or dots must not lead to another path. */
function segment(text: string): string {
  if (text !== '' && text !== '.' && text !== '..') return encodeURIComponent(text);
  throw new CodedError('InvalidPathSegment', `${quote(text)} cannot be part of a request path; correct the name`);
}

/** Throws ApiError for a status other than 2xx, and TransportError without an object. */
export function objectIn({ status, text }: Answer): KubeObject {
  const object = parsed(text);
  if (status < 200 || status > 299) {
    // Messages reach the status of entries: another server may answer with its secrets.
    const message = own(object, 'kind') === 'Status' ? own(object, 'message') : undefined;
    const why = typeof message === 'string' ? message.slice(0, 1000) : 'the answer has no Status with a message';
    throw new ApiError(status, `${status}: ${why}`);
  }
  if (isRecord(object) && isRecord(object['metadata'])) return object as unknown as KubeObject;
  throw new TransportError(
    'the answer is not a Kubernetes object; check that the URL leads to the API server and not to a proxy',
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
