import { childNameOf } from '../api/access/names.ts';
import { apiVersionOf, keyOf, type Resource } from '../api/object.ts';
import type { Journal } from '../audit/journal.ts';
import type { AuditRecord } from '../audit/record.ts';
import { done, type Reconciler, type Result } from '../engine/result.ts';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';
import { type Client, findObject } from '../kube/client.ts';
import type { Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import type { Applier } from '../rbac/applier.ts';
import type { AccessKind } from './access-kind.ts';
import { type AccessStores, byRequest, byUid } from './stores/access-stores.ts';
import { accessEndMs, type RequestView, viewRequest } from './stores/access-views.ts';
import type { ChildView, PodView } from './stores/cluster-views.ts';

/** Children of a request are orphans this long after its deadline. */
const overdueMs = 60_000;

/**
 * Deletes orphans, by the uid of their request: objects of a grant whose request is gone, has
 * ended, is overdue, or is in another namespace, and objects that neither `status.children` nor
 * `childNameOf` names.
 */
export class Janitor implements Reconciler {
  readonly #deps: JanitorDeps;
  /** By request uid: children that this janitor deleted, while a store may still have them. */
  readonly #deleted = new Map<string, Set<string>>();

  constructor(deps: JanitorDeps) {
    this.#deps = deps;
  }

  /** According to the stores. Discards records of deletions that all stores have observed. */
  suspects(): Set<string> {
    const { roleBindings, roles, pods } = this.#deps.stores;
    const uids = new Set<string>();
    for (const store of [roleBindings, roles, pods]) {
      for (const { requestRef } of store.list()) if (requestRef) uids.add(requestRef.uid);
    }
    for (const uid of this.#deleted.keys()) if (!uids.has(uid)) this.#deleted.delete(uid);
    for (const uid of uids) if (this.#orphans(uid).length === 0) uids.delete(uid);
    return uids;
  }

  async reconcile(uid: string, signal: AbortSignal): Promise<Result> {
    const liveRequests = new Map<string, RequestView | undefined>();
    for (const child of this.#orphans(uid)) {
      // A store may lag behind, so a live read confirms that the child belongs to no request.
      const { kind = '', name = '' } = child.requestRef.owner ?? {};
      const requestKey = `${kind} ${keyOf({ namespace: child.namespace, name })}`;
      if (!liveRequests.has(requestKey)) liveRequests.set(requestKey, await this.#liveRequest(child, signal));
      const request = liveRequests.get(requestKey);
      if (request && this.#belongsTo(child, request)) continue;
      await this.#remove(child, request, signal);
    }
    return done;
  }

  /** RoleBindings come first, because they give access. */
  #orphans(uid: string): Child[] {
    const { roleBindings, roles, pods } = this.#deps.stores;
    const deleted = this.#deleted.get(uid);
    const request = this.#deps.kinds.flatMap(({ requests }) => requests.byIndex(byUid, uid))[0];
    return [childrenIn(roleBindings, uid), childrenIn(roles, uid), childrenIn(pods, uid)]
      .flat()
      .filter((child) => !deleted?.has(child.uid) && !(request && this.#belongsTo(child, request)));
  }

  #belongsTo(child: Child, request: RequestView): boolean {
    // The API server may have created the object after the end, for a call that was aborted.
    if (child.namespace !== request.namespace || request.ended) return false;
    const endMs = accessEndMs(request);
    if (endMs !== undefined && this.#deps.clock.now() >= endMs + overdueMs) return false;
    return child.name === childNameOf(request) || request.children.some(({ uid }) => uid === child.uid);
  }

  async #liveRequest({ namespace, requestRef }: Child, signal: AbortSignal): Promise<RequestView | undefined> {
    const { client, kinds } = this.#deps;
    const { uid, owner } = requestRef;
    for (const { requestKind, requestResource } of kinds) {
      if (owner && owner.kind !== requestKind) continue;
      const found = owner
        ? await findObject(client, requestResource, { namespace, name: owner.name }, { signal })
        : (await client.list(requestResource, { namespace, signal })).items.find((item) => item.metadata.uid === uid);
      const request = found && viewRequest({ ...found, kind: requestKind });
      if (request?.uid === uid) return request;
    }
    return undefined;
  }

  async #remove(child: Child, request: RequestView | undefined, signal: AbortSignal): Promise<void> {
    const { applier, journal, log, onOrphan } = this.#deps;
    const { resource, uid, requestRef } = child;
    const existed = await applier.delete(resource, child, { uid, ownerUid: requestRef.uid }, signal);
    const deleted = this.#deleted.get(requestRef.uid) ?? new Set();
    this.#deleted.set(requestRef.uid, deleted.add(uid));
    // If it no longer existed, this call deleted nothing that it could report.
    if (!existed) return;
    const record = orphanRecord(child, request);
    onOrphan(resource.kind);
    const object = { kind: resource.kind, object: child.key, request: requestRef.uid };
    log.warn('deleted an orphaned object of a grant', object);
    journal.append(record).catch((error: unknown) => {
      log.error('audit line lost', { event: record.event, ...object, error: describe(error) });
    });
  }
}

interface JanitorDeps {
  readonly kinds: readonly AccessKind[];
  readonly stores: Pick<AccessStores, 'roleBindings' | 'roles' | 'pods'>;
  readonly client: Client;
  readonly applier: Applier;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOrphan: (kind: string) => void;
}

interface Child extends ChildView {
  readonly resource: Resource;
}

function childrenIn(store: Store<PodView> | Store<ChildView>, request: string): Child[] {
  const { resource } = store;
  return store
    .byIndex(byRequest, request)
    .flatMap(({ key, uid, resourceVersion, namespace, name, requestRef, nothingToRevoke }) => {
      return requestRef && !nothingToRevoke
        ? [{ key, uid, resourceVersion, namespace, name, requestRef, nothingToRevoke, resource }]
        : [];
    });
}

/** Without the request, the message has its uid, and the line of the grant names the requester. */
function orphanRecord({ resource, namespace, name, uid, requestRef }: Child, request?: RequestView): AuditRecord {
  const { requester, templateName } = request?.spec ?? {};
  return {
    event: 'revocation',
    verdict: 'revoked',
    who: { user: requester?.username ?? '', uid: requester?.uid ?? '', groups: requester?.groups ?? [] },
    what: {
      operation: 'REVOKE',
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      namespace,
      name,
      uid,
    },
    ...(templateName === undefined ? {} : { template: templateName }),
    code: 'Orphaned',
    message: request
      ? `request ${request.name} (uid ${requestRef.uid}) does not list the object, or its access has ended`
      : `namespace ${namespace} has no request with the uid ${requestRef.uid}`,
  };
}
