import { planHashAnnotation, requestLabel } from '../api/access/names.ts';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { roleBindings } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import { type Client, type Deletion, findObject } from '../kube/client.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';

/** That we created an object for a request: label, owner, and hash of the plan. */
interface Provenance {
  readonly ownerUid: string;
  readonly planHash: string;
}

export type Created =
  | { readonly kind: 'created'; readonly object: KubeObject }
  /** It existed and is ours: an earlier attempt created it. */
  | { readonly kind: 'adopted'; readonly object: KubeObject }
  /** An object that is not for this request and plan has the name. It stays. */
  | { readonly kind: 'collision'; readonly message: string }
  /** Until the cause is corrected: invalid, forbidden, too large, or no namespace. */
  | { readonly kind: 'refused'; readonly message: string };

/** Seconds. 0 would mean the Pod's terminationGracePeriodSeconds, during which shells continue. */
export const deletionGraceS = 1;

/** The same creation fails again until its cause is corrected. */
const permanentCodes = new Set([400, 403, 404, 405, 413, 422]);

export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && permanentCodes.has(error.code);

/**
 * Creates and deletes the objects of grants. Adopts no foreign object, and deletes none: only by a
 * known uid, or after checking the owner.
 */
export class Applier {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Adopts an existing object of ours. Rejects on temporary errors. */
  async create(resource: Resource, object: KubeObject, provenance: Provenance, signal: AbortSignal): Promise<Created> {
    try {
      return { kind: 'created', object: await this.#client.create(resource, object, { signal }) };
    } catch (error) {
      if (isAlreadyExists(error)) return this.#adoptIfOurs(resource, object, provenance, signal);
      if (isRefusal(error)) return { kind: 'refused', message: error.why };
      throw error;
    }
  }

  async #adoptIfOurs(
    resource: Resource,
    wanted: KubeObject,
    provenance: Provenance,
    signal: AbortSignal,
  ): Promise<Created> {
    const found = await this.#client.get(resource, wanted.metadata, { signal });
    const { labels = {}, annotations = {} } = found.metadata;
    const ours =
      // Admission policies let only the server set this label. The other marks can be copied.
      labels[requestLabel] === provenance.ownerUid &&
      isOwnedBy(found, provenance.ownerUid) &&
      annotations[planHashAnnotation] === provenance.planHash;
    if (ours) return { kind: 'adopted', object: found };
    return {
      kind: 'collision',
      message: `${resource.kind} ${keyOf(wanted.metadata)} exists and was not created for this request; delete it or create a new request`,
    };
  }

  /**
   * By `uid`, or after a read if its controller is `ownerUid`. A RoleBinding that finalizers keep
   * loses its subjects. False if nothing of ours was there, or nothing that gave access.
   */
  async delete(
    resource: Resource,
    name: ObjectName,
    owner: { readonly uid?: string; readonly ownerUid: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    const uid = owner.uid ?? (await this.#uidIfOwned(resource, name, owner.ownerUid, signal));
    if (uid === undefined) return false;
    let deletion: Deletion;
    try {
      const options = { uid, gracePeriodSeconds: deletionGraceS, propagation: 'Background', signal } as const;
      deletion = await this.#client.delete(resource, name, options);
    } catch (error) {
      if (!isConflict(error) || owner.uid === undefined) throw error;
      // Another object has the name. It may be ours as well, so read it.
      return this.delete(resource, name, { ownerUid: owner.ownerUid }, signal);
    }
    if (typeof deletion === 'string') return deletion === 'deleted';
    return resource === roleBindings ? this.#removeSubjects(deletion.held, signal) : true;
  }

  /** A RoleBinding that finalizers keep still gives access. Resolves to whether it had subjects. */
  async #removeSubjects({ metadata, ...roleBinding }: KubeObject, signal: AbortSignal): Promise<boolean> {
    const subjects = own(roleBinding, 'subjects');
    if (!Array.isArray(subjects) || subjects.length === 0) return false;
    const ops = [
      { op: 'test', path: '/metadata/uid', value: metadata.uid },
      { op: 'remove', path: '/subjects' },
    ] as const;
    try {
      await this.#client.jsonPatch(roleBindings, metadata, ops, { signal });
    } catch (error) {
      // The RoleBinding or its Role no longer exists, so it gives no access.
      if (!isNotFound(error)) throw error;
    }
    return true;
  }

  async #uidIfOwned(
    resource: Resource,
    name: ObjectName,
    ownerUid: string,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const found = await findObject(this.#client, resource, name, { signal });
    return found && isOwnedBy(found, ownerUid) ? found.metadata.uid : undefined;
  }
}

function isOwnedBy(object: KubeObject, ownerUid: string): boolean {
  return (object.metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === ownerUid);
}
