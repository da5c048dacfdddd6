import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { isNotFound } from './errors.ts';

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
}

/** Options of calls that write. */
export interface WriteOptions extends CallOptions {
  /** Default: the API server takes the name of the program from the User-Agent. */
  readonly fieldManager?: string;
  /** Whether the API server checks the write without storing it. Default false. */
  readonly dryRun?: boolean;
  /** `Strict`: the API server rejects an object with unknown fields by ApiError 400. Default: it drops them. */
  readonly fieldValidation?: 'Strict';
  /** Subresource to write instead of the object, such as `status`. Default: the object itself. */
  readonly subresource?: string;
}

/** Which objects to list, and how. */
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

/** Which object to delete, and how. */
export interface DeleteOptions extends CallOptions {
  /** Deletes only the object with this uid. If another object has the name, the call rejects with ApiError 409. */
  readonly uid?: string;
  /** Deletes the object only while it has this resourceVersion. If the object has changed, the call rejects with ApiError 409. */
  readonly resourceVersion?: string;
  /** Default: the API server's default for the kind, normally `Background`. */
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** For Pods: how long their containers may take to stop. Default: as the Pod's spec says. */
  readonly gracePeriodSeconds?: number;
}

/**
 * The result of a delete call. `absent`: the object does not exist, or its kind is not served. `deleted`: the API server deletes the
 * object, at once or after its grace period. `held`: the object still exists, in this state, because it has finalizers.
 */
export type Deletion = 'absent' | 'deleted' | { readonly held: KubeObject };

/** An operation of RFC 6902. */
export interface JsonPatchOp {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly value?: unknown;
  readonly from?: string;
}

/** The attributes of a SubjectAccessReview. */
export interface AccessQuestion {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly verb: string;
  /** API group of the resource; empty for the core group. `groups` are those of the user. */
  readonly group: string;
  /** Plural name, such as `pods`. */
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** The user of a token, from the API server. */
export interface TokenUser {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** All pages of a list. */
export interface ObjectList {
  readonly items: KubeObject[];
  /** resourceVersion of the collection, from which a watch can start. */
  readonly resourceVersion: string;
}

/**
 * Calls the API server of one cluster. Objects of all resources are plain JSON. A call rejects with ApiError (code, reason, retryAfterMs)
 * on an answer other than 2xx; only `delete` resolves on 404. Without a usable answer, it rejects with TransportError; if `signal` aborts,
 * with the reason of `signal`; on an invalid name, with CodedError `InvalidPathSegment`; without a required namespace, with
 * `NamespaceRequired`.
 *
 * A call takes at most four attempts and, by default, 30 s (a list: for each page). Reads and reviews are retried if the server is
 * unreachable, or answers 429 or 5xx. Writes are retried only if the server did not act: it answered 429 or 503, with Retry-After, or there
 * was no connection, or there were no credentials.
 */
export interface Client {
  /** Gets an object, or a subresource of it. */
  get(resource: Resource, name: ObjectName, options?: CallOptions & { subresource?: string }): Promise<KubeObject>;
  /** Lists all pages, in order. Rejects if a page fails. If the list expires between two pages, restarts it once. */
  list(resource: Resource, options?: ListOptions): Promise<ObjectList>;
  /** Creates the object. If an object has the name, rejects with ApiError 409, reason `AlreadyExists`. */
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Applies a JSON merge patch (RFC 7396). With `metadata.resourceVersion`, rejects with ApiError 409 if the object has changed. */
  mergePatch(resource: Resource, name: ObjectName, patch: unknown, options?: WriteOptions): Promise<KubeObject>;
  /** Applies a JSON Patch (RFC 6902). A failed `test` rejects with ApiError 422. */
  jsonPatch(
    resource: Resource,
    name: ObjectName,
    ops: readonly JsonPatchOp[],
    options?: WriteOptions,
  ): Promise<KubeObject>;
  /** Replaces (PUT) the object. With `metadata.resourceVersion`, rejects with ApiError 409 if the object has changed. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply, which creates a missing object. Without `force`, rejects with ApiError 409 if another manager owns a field. */
  apply(
    resource: Resource,
    object: KubeObject,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<KubeObject>;
  /** Requests the deletion. Does not wait for its end. */
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<Deletion>;
  /**
   * Creates a token of a ServiceAccount (TokenRequest). `expiresAt`: RFC 3339; the API server may choose another lifetime than requested.
   */
  createToken(
    serviceAccount: ObjectName,
    request: { audiences?: string[]; expirationSeconds: number; boundObject?: unknown },
    options?: CallOptions,
  ): Promise<{ token: string; expiresAt: string }>;
  /** Whether the authorizers of the API server allow the action (SubjectAccessReview). */
  isAllowed(question: AccessQuestion, options?: CallOptions): Promise<boolean>;
  /**
   * The user of a token (TokenReview). Undefined if the token is invalid or for none of `audiences`. Default of `audiences`:
   * the audience of the API server.
   */
  reviewToken(token: string, options?: CallOptions & { audiences?: string[] }): Promise<TokenUser | undefined>;
  /**
   * The same client, but its writes and `createToken` call `check` before every attempt, and reject with the error that `check` throws.
   * `check` replaces that of an earlier `leaderOnly`.
   */
  leaderOnly(check: () => void): Client;
  /**
   * The same client over reserved connections. A call, with its retries, takes at most 5 s (a list: for each page), so that the caller's
   * next attempt takes another connection. For calls such as those that revoke access or renew a Lease.
   */
  urgent(): Client;
  /** GET of a raw path, parsed as JSON (`/version`, discovery). */
  raw(path: string, options?: CallOptions): Promise<unknown>;
}

/** Gets the object; undefined if it does not exist or its kind is not served. Rejects like `Client.get` on other errors. */
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
