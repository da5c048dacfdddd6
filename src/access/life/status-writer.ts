import type { Client } from '../../kube/client.ts';
import { isOlder } from '../../kube/resource-version.ts';
import type { AccessKind } from '../access-kind.ts';
import { type RequestView, viewRequest } from '../stores/access-views.ts';
import type { RequestStatus } from './request-status.ts';

/** Writes the status of requests, each write guarded by the resourceVersion that its reasoning was based on. */
export class StatusWriter {
  readonly #client: Client;
  readonly #kind: AccessKind;
  /** By request uid: what this process wrote last, until the store shows it too. */
  readonly #written = new Map<string, RequestView>();

  constructor(client: Client, kind: AccessKind) {
    this.#client = client;
    this.#kind = kind;
  }

  /** Resolves to the request as written; rejects with a 409 ApiError when it has changed since `request` was read. */
  async write(request: RequestView, status: RequestStatus, signal: AbortSignal): Promise<RequestView> {
    const patch = { metadata: { resourceVersion: request.resourceVersion, uid: request.uid }, status };
    const written = await this.#client.mergePatch(this.#kind.requestResource, request, patch, {
      subresource: 'status',
      signal,
    });
    const view = viewRequest(written);
    if (!view) throw new Error(`${this.#kind.requestKind} ${request.key} came back unreadable from the status write`);
    this.#written.set(view.uid, view);
    return view;
  }

  /** The newer of `request`, as a store has it, and what this process wrote: a store that lags behind must not make it act twice. */
  latest(request: RequestView): RequestView {
    const written = this.#written.get(request.uid);
    if (written && isOlder(request.resourceVersion, written.resourceVersion)) return written;
    this.#written.delete(request.uid);
    return request;
  }

  forget(uid: string): void {
    this.#written.delete(uid);
  }
}
