import { macAnnotation, planHashAnnotation, requestLabel } from '../api/access/names.ts';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { roleBindings } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import { type Client, type Deletion, findObject } from '../kube/client.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';

/** The proof that the server created an object for a request: our label, the owner's uid, the hash of the plan, and our MAC. */
interface Provenance {
  readonly ownerUid: string;
  readonly planHash: string;
  /** Whether `mac`, the annotation of the object, is our MAC of it. False without a MAC. Rejects if the keys cannot be read. */
  isOurMac(mac: string | undefined, signal: AbortSignal): Promise<boolean>;
}

/** The result of a creation. */
export type Created =
  | { readonly kind: 'created'; readonly object: KubeObject }
  /** The object existed and is ours: an earlier attempt created it. */
  | { readonly kind: 'adopted'; readonly object: KubeObject }
  /** An object that was not created for this request and plan has the name. It stays unchanged. */
  | { readonly kind: 'collision'; readonly message: string }
  /**
   * The API server rejects this object until the cause is corrected: for example, it is invalid, forbidden, or too large, or its namespace
   * does not exist.
   */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Grace period of every Pod deletion, seconds. Not 0, because the kubelet would then use the Pod's terminationGracePeriodSeconds, during
 * which open shells continue.
 */
export const deletionGraceS = 1;

/** Status codes after which the same creation fails again until its cause is corrected. */
const permanentCodes = new Set([400, 403, 404, 405, 413, 422]);

/** Whether the API server rejects the creation until its cause is corrected. */
export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && permanentCodes.has(error.code);

/** Creates and deletes the objects of grants. It never adopts a foreign object, and deletes by a known uid or after checking the owner. */
export class Applier {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Creates `object`, or adopts it if it exists and is ours. Rejects on temporary errors, or if it cannot read or verify an existing
   * object.
   */
  async create(resource: Resource, object: KubeObject, provenance: Provenance, signal: AbortSignal): Promise<Created> {
    try {
      return { kind: 'created', object: await this.#client.create(resource, object, { signal }) };
    } catch (error) {
      if (isAlreadyExists(error)) return this.#adoptIfOurs(resource, object, provenance, signal);
      if (isRefusal(error)) return { kind: 'refused', message: error.message };
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
      // The admission policies let only the server create objects with this label. The other marks can be copied to any object.
      labels[requestLabel] === provenance.ownerUid &&
      isOwnedBy(found, provenance.ownerUid) &&
      annotations[planHashAnnotation] === provenance.planHash &&
      (await provenance.isOurMac(annotations[macAnnotation], signal));
    if (ours) return { kind: 'adopted', object: found };
    return {
      kind: 'collision',
      message: `${resource.kind} ${keyOf(wanted.metadata)} exists and was not created for this request; delete it or create a new request`,
    };
  }

  /**
   * Deletes the object if it is ours. Afterwards, our object no longer exists, or it is terminating. With `uid`, the applier deletes it
   * without a read, unless another object has the name. Otherwise, it first reads the object, and deletes it only if its controller is
   * `ownerUid`. If finalizers keep a RoleBinding, the applier also removes its subjects. Resolves to whether an object of ours existed; to
   * false for a RoleBinding that finalizers keep and that already has no subjects. Rejects as the client does.
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
      // Another object has the name. It may be ours, too, so read it.
      return this.delete(resource, name, { ownerUid: owner.ownerUid }, signal);
    }
    if (typeof deletion === 'string') return deletion === 'deleted';
    return resource === roleBindings ? this.#removeSubjects(deletion.held, signal) : true;
  }

  /** Removes the subjects of a RoleBinding that finalizers keep, because it still gives access. Resolves to whether it had subjects. */
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
