import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { isNotFound } from './errors.ts';

export interface CallOptions {
  /** The call then rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** Default: the API server takes the program's name from the User-Agent. */
  readonly fieldManager?: string;
  /** The API server checks the write without storing it. */
  readonly dryRun?: boolean;
  /** Rejects unknown fields with ApiError 400. Default: the API server drops them. */
  readonly fieldValidation?: 'Strict';
  /** Written instead of the object, such as `status`. */
  readonly subresource?: string;
}

export interface ListOptions extends CallOptions {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size. Default 500. */
  readonly limit?: number;
  /** `"0"` accepts a cached answer. Default: the latest objects. */
  readonly resourceVersion?: string;
}

export interface DeleteOptions extends CallOptions {
  /** If another object has the name, the call rejects with ApiError 409. */
  readonly uid?: string;
  /** If the object has changed since, the call rejects with ApiError 409. */
  readonly resourceVersion?: string;
  /** Default: the API server's default for the kind, normally `Background`. */
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** For Pods. Default: as the spec says. */
  readonly gracePeriodSeconds?: number;
}

/** `absent`: or its kind is not served. `held`: the object, which its finalizers keep. */
export type Deletion = 'absent' | 'deleted' | { readonly held: KubeObject };

/** Of RFC 6902. */
export interface JsonPatchOp {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly value?: unknown;
  readonly from?: string;
}

/** Of a SubjectAccessReview. */
export interface AccessQuestion {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  /** Empty for the core group. `groups` are those of the user. */
  readonly group: string;
  /** Plural name, such as `pods`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

export interface TokenUser {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface ObjectList {
  readonly items: KubeObject[];
  /** The collection's; a watch can start there. */
  readonly resourceVersion: string;
}

/**
 * Calls the API server of one cluster. Objects are plain JSON.
 *
 *     const pod = await client.get(pods, { namespace: 'shop', name: 'db-0' });
 *
 * Rejects with ApiError (code, reason, retryAfterMs), TransportError without a usable answer, or
 * the reason of `signal`; only `delete` resolves on 404. At most four attempts in 30 s (a list: for
 * each page): reads after 429, 5xx, or no answer; writes only if the server certainly did not act.
 */
export interface Client {
  /** Also gets a subresource. */
  get(resource: Resource, name: ObjectName, options?: CallOptions & { subresource?: string }): Promise<KubeObject>;
  /** All pages, in order. A list that expires between two pages restarts once. */
  list(resource: Resource, options?: ListOptions): Promise<ObjectList>;
  /** Rejects with ApiError 409, reason `AlreadyExists`, if an object has the name. */
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** RFC 7396. With `metadata.resourceVersion`: ApiError 409 if the object has changed. */
  mergePatch(resource: Resource, name: ObjectName, patch: unknown, options?: WriteOptions): Promise<KubeObject>;
  /** RFC 6902. A failed `test` rejects with ApiError 422. */
  jsonPatch(
    resource: Resource,
    name: ObjectName,
    ops: readonly JsonPatchOp[],
    options?: WriteOptions,
  ): Promise<KubeObject>;
  /** PUT. With `metadata.resourceVersion`: ApiError 409 if the object has changed. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Creates a missing object. Without `force`: ApiError 409 if another manager owns a field. */
  apply(
    resource: Resource,
    object: KubeObject,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<KubeObject>;
  /** Does not wait for the end of the deletion. */
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<Deletion>;
  /** TokenRequest. `expiresAt`: RFC 3339; the API server may choose another lifetime. */
  createToken(
    serviceAccount: ObjectName,
    request: { audiences?: string[]; expirationSeconds: number; boundObject?: unknown },
    options?: CallOptions,
  ): Promise<{ token: string; expiresAt: string }>;
  /** SubjectAccessReview. */
  isAllowed(question: AccessQuestion, options?: CallOptions): Promise<boolean>;
  /** TokenReview. The default of `audiences` is the API server's. */
  reviewToken(token: string, options?: CallOptions & { audiences?: string[] }): Promise<TokenUser | undefined>;
  /** Writes and `createToken` call `check` before every attempt, and reject with its error. */
  leaderOnly(check: () => void): Client;
  /** Reserved connections, and at most 5 s a call: to revoke access, or renew a Lease. */
  urgent(): Client;
  /** GET of a path such as `/version`, parsed as JSON. */
  raw(path: string, options?: CallOptions): Promise<unknown>;
}

/** Nothing on 404. Otherwise rejects like `Client.get`. */
export async function findObject(
  client: Pick<Client, 'get'>,
  resource: Resource,
  name: ObjectName,
  options: CallOptions,
): Promise<KubeObject | undefined> {
  try {
    return await client.get(resource, name, options);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
