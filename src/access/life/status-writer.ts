import type { Client } from '../../kube/client.ts';
import type { AccessKind } from '../access-kind.ts';
import { viewRequest } from '../stores/request-view.ts';
import type { RequestView } from '../stores/views.ts';
import type { RequestStatus } from './request-status.ts';

/** Writes the status of requests, each write guarded by the resourceVersion that its reasoning was based on. */
export class StatusWriter {
  readonly #client: Client;
  readonly #kind: AccessKind;

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
    return view;
  }
}
