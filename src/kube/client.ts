import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { isNotFound } from './errors.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  /** Subresource to write instead of the object, such as `status`. */
  readonly subresource?: string;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size. Default 500. */
  readonly limit?: number;
  /** `"0"` accepts a cached answer; if absent, reads the latest. */
  readonly resourceVersion?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Deletes only the object with this uid; another object with the name answers 409. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** For Pods: how long their containers may take to stop. */
  readonly gracePeriodSeconds?: number;
}

/**
 * `absent`: no such object. `deleted`: the API server deletes the object, at once or after its grace period. `held`: the current state
 * of the object, which finalizers keep.
 */
export type Deletion = 'absent' | 'deleted' | { readonly held: KubeObject };

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
  readonly group: string;
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

export interface ListPage {
  readonly items: KubeObject[];
  /** Version of the collection, from which a watch can start. */
  readonly resourceVersion: string;
}

/**
 * Raw objects by resource, over one pool of connections. Every method rejects with ApiError (code, reason, retryAfterMs) on an answer
 * other than 2xx, and with TransportError without an answer. Reads are retried with jitter. Writes are retried only if the server did
 * not act (429 and 503 with Retry-After, connection refused).
 */
export interface Client {
  get(resource: Resource, name: ObjectName, options?: CallOptions & { subresource?: string }): Promise<KubeObject>;
  /** Lists all pages, in order; rejects if one fails. */
  list(resource: Resource, options?: ListOptions): Promise<ListPage>;
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  mergePatch(resource: Resource, name: ObjectName, patch: unknown, options?: WriteOptions): Promise<KubeObject>;
  jsonPatch(
    resource: Resource,
    name: ObjectName,
    ops: readonly JsonPatchOp[],
    options?: WriteOptions,
  ): Promise<KubeObject>;
  /** Replaces (PUT) the object. With `metadata.resourceVersion`, it fails if the object has changed. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply. */
  apply(
    resource: Resource,
    object: KubeObject,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<KubeObject>;
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<Deletion>;
  /** Creates a token of a ServiceAccount with the TokenRequest API. */
  createToken(
    serviceAccount: ObjectName,
    request: { audiences?: string[]; expirationSeconds: number; boundObject?: unknown },
    options?: CallOptions,
  ): Promise<{ token: string; expiresAt: string }>;
  /** Whether the authorizers of the API server allow the action (SubjectAccessReview). */
  isAllowed(question: AccessQuestion, options?: CallOptions): Promise<boolean>;
  /** The user of a token (TokenReview). Undefined if the token is invalid or for none of `audiences`. Default: the audience of the API server. */
  reviewToken(token: string, options?: CallOptions & { audiences?: string[] }): Promise<TokenUser | undefined>;
  /** The same client, but its writes call `check` before every attempt, and reject with the error that `check` throws. */
  leaderOnly(check: () => void): Client;
  /**
   * The same client over reserved connections. A call rejects after 5 s without an answer, so that the caller's next attempt takes
   * another connection. For calls that revoke access or renew a Lease.
   */
  urgent(): Client;
  /** GET of a raw path, parsed as JSON (`/version`, discovery). */
  raw(path: string, options?: CallOptions): Promise<unknown>;
}

/** Gets the object; undefined if it does not exist. */
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
