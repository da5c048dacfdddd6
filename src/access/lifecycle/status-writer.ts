import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { WriteThroughCache } from '../../kube/write-through-cache.ts';
import type { AccessKind } from '../access-kind.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import { isUnchanged, type Shown, statusOf } from './status.ts';

interface StatusWriterDeps {
  readonly client: Client;
  readonly kind: AccessKind;
  readonly clock: Clock;
}

/** Writes the status of requests, with an optimistic lock on the version that the caller read. */
export class StatusWriter {
  readonly #deps: StatusWriterDeps;
  /** By key. A store that lags behind must not cause a second write. */
  readonly #written: WriteThroughCache<RequestView>;

  constructor(deps: StatusWriterDeps) {
    this.#deps = deps;
    this.#written = new WriteThroughCache({
      watched: (key) => deps.kind.requests.get(key),
      uidOf: ({ uid }) => uid,
      trustMs: Number.POSITIVE_INFINITY,
      clock: deps.clock,
    });
  }

  /**
   * Resolves to `request` itself if its status already shows that. Rejects with a 409 ApiError if
   * the request changed since it was read.
   */
  async show(request: RequestView, shown: Shown, signal: AbortSignal): Promise<RequestView> {
    const { client, kind, clock } = this.#deps;
    const status = statusOf(request, shown, clock.now());
    if (isUnchanged(request, status)) return request;
    return this.#written.call(request.key, async () => {
      const { approval } = status;
      // A merge patch keeps fields that it omits, so those of an earlier approval would remain.
      const replaced = approval ? { approval: { due: null, all: null, votes: null, ...approval } } : {};
      const metadata = { resourceVersion: request.resourceVersion, uid: request.uid };
      const patch = { metadata, status: { ...status, ...replaced } };
      const options = { subresource: 'status', signal };
      const view = viewRequest(await client.mergePatch(kind.requestResource, request, patch, options));
      if (view) return view;
      throw new Error(`the API server returned an unreadable ${kind.requestKind} ${request.key} for the status write`);
    });
  }

  /** From the store, or as this process wrote it since. */
  latest(key: string): RequestView | undefined {
    const stored = this.#deps.kind.requests.get(key);
    const latest = stored && this.#written.get(key);
    return latest?.uid === stored?.uid ? latest : stored;
  }

  /** `latest` then returns the request of the store. */
  forget(key: string): void {
    this.#written.forget(key);
  }
}
