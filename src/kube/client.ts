import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { isNotFound } from './errors.ts';

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
  /** Writes to `/status` or another subresource instead of the object. */
  readonly subresource?: string;
}

export interface ListOptions extends CallOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Page size. Default 500. */
  readonly limit?: number;
  /** `"0"` accepts a cached answer; absent reads the latest. */
  readonly resourceVersion?: string;
}

export interface DeleteOptions extends CallOptions {
  /** Deletes only the object with this uid; another one under the name answers 409. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
  /** Of Pods: how long their containers may take to end. */
  readonly gracePeriodSeconds?: number;
}

/** What a delete came to: nothing was there; it is gone, or goes by itself; or finalizers hold it, and this is what it is now. */
export type Deletion = 'absent' | 'deleted' | { readonly held: KubeObject };

export interface JsonPatchOp {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly value?: unknown;
  readonly from?: string;
}

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

/** Whom a token belongs to, as the API server says. */
export interface TokenUser {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface ListPage {
  readonly items: KubeObject[];
  readonly resourceVersion: string;
}

/**
 * Raw objects by resource over one pooled connection set. Every method rejects with ApiError (code, reason, retryAfterMs) on an
 * answer that is not 2xx and with TransportError when no answer came. Reads are retried with jitter; writes only where the server
 * said that it did not act (429 and 503 with Retry-After, connection refused).
 */
export interface Client {
  get(resource: Resource, name: ObjectName, options?: CallOptions & { subresource?: string }): Promise<KubeObject>;
  /** All pages, in order; rejects as a whole. */
  list(resource: Resource, options?: ListOptions): Promise<ListPage>;
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  mergePatch(resource: Resource, name: ObjectName, patch: unknown, options?: WriteOptions): Promise<KubeObject>;
  jsonPatch(
    resource: Resource,
    name: ObjectName,
    ops: readonly JsonPatchOp[],
    options?: WriteOptions,
  ): Promise<KubeObject>;
  /** Replaces (PUT) the object; `metadata.resourceVersion` in it makes it optimistic. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply. */
  apply(
    resource: Resource,
    object: KubeObject,
    options: WriteOptions & { fieldManager: string; force?: boolean },
  ): Promise<KubeObject>;
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<Deletion>;
  /** A token of a ServiceAccount by the TokenRequest API. */
  createToken(
    serviceAccount: ObjectName,
    request: { audiences?: string[]; expirationSeconds: number; boundObject?: unknown },
    options?: CallOptions,
  ): Promise<{ token: string; expiresAt: string }>;
  /** SubjectAccessReview: may this user do that? */
  isAllowed(question: AccessQuestion, options?: CallOptions): Promise<boolean>;
  /** TokenReview: whose token is that? Undefined for one that is not good, or not for any of the audiences; default: the API server's own. */
  reviewToken(token: string, options?: CallOptions & { audiences?: string[] }): Promise<TokenUser | undefined>;
  /** The same client, whose writes call `check` before every try, retries included, and reject with what it throws. Reads and reviews pass. */
  leaderOnly(check: () => void): Client;
  /**
   * The same client over connections that no other calls use up. A call rejects after 5 s without an answer, so that the caller's next
   * try takes another connection. For what ends access and what keeps the Lease.
   */
  urgent(): Client;
  /** GET of a raw path, parsed as JSON (`/version`, discovery). */
  raw(path: string, options?: CallOptions): Promise<unknown>;
}

/** The object; undefined when there is none under the name. */
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
