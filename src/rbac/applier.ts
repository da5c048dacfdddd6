import { macAnnotation, planHashAnnotation } from '../api/access/names.ts';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../api/object.ts';
import { roleBindings } from '../api/resources.ts';
import { own } from '../kit/json-value.ts';
import { type Client, type Deletion, findObject } from '../kube/client.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';

/** Proves that an object under one of our names is one that we made: the owner's uid, the hash of the plan it came from, and our MAC. */
interface Provenance {
  readonly ownerUid: string;
  readonly planHash: string;
  /** Whether the object's MAC, if it has one, is ours. */
  isOurMac(mac: string | undefined, signal: AbortSignal): Promise<boolean>;
}

export type Created =
  | { readonly kind: 'created'; readonly object: KubeObject }
  /** It was there already and it is ours: an earlier run got this far. */
  | { readonly kind: 'adopted'; readonly object: KubeObject }
  /** Somebody else's object holds the name; it was left as it is. */
  | { readonly kind: 'collision'; readonly message: string }
  /** The apiserver will never take this object (invalid, forbidden, too large). */
  | { readonly kind: 'refused'; readonly message: string };

/**
 * What a Pod gets to end in, seconds. Not 0: kubelets take that for no word on the matter and give a Pod its own
 * terminationGracePeriodSeconds, during which open shells go on.
 */
export const deletionGraceS = 1;

const refusals = new Set([400, 403, 404, 405, 413, 422]);

/** The only code that turns grants into objects and back: creates and never adopts a stranger's, deletes only what it can prove is ours. */
export class Applier {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Creates `object`. Rejects on faults that may pass; everything final is a value. */
  async create(resource: Resource, object: KubeObject, provenance: Provenance, signal: AbortSignal): Promise<Created> {
    try {
      return { kind: 'created', object: await this.#client.create(resource, object, { signal }) };
    } catch (error) {
      if (isAlreadyExists(error)) return this.#adoptIfOurs(resource, object, provenance, signal);
      if (error instanceof ApiError && refusals.has(error.code)) return { kind: 'refused', message: error.message };
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
    const annotations = found.metadata.annotations ?? {};
    const ours =
      isOwnedBy(found, provenance.ownerUid) &&
      annotations[planHashAnnotation] === provenance.planHash &&
      (await provenance.isOurMac(annotations[macAnnotation], signal));
    if (ours) return { kind: 'adopted', object: found };
    return {
      kind: 'collision',
      message: `${resource.kind} ${keyOf(wanted.metadata)} exists and was not made for this request; delete it or create a new request`,
    };
  }

  /**
   * Deletes the object if it is ours; afterwards nothing of ours is left under the name, or it is on its way out and gives nothing.
   * With a known `uid` that is one call; without, the object is read first and must carry `ownerUid` as its controller.
   * Resolves to whether there was something of ours to delete.
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
      // Not the object that was meant; only a look at it tells whether it is ours all the same.
      return this.delete(resource, name, { ownerUid: owner.ownerUid }, signal);
    }
    if (typeof deletion === 'string') return deletion === 'deleted';
    return resource === roleBindings ? this.#removeSubjects(deletion.held, signal) : true;
  }

  /** A RoleBinding that finalizers hold would let people in until they go. Resolves to whether it still let anybody in. */
  async #removeSubjects({ metadata, ...held }: KubeObject, signal: AbortSignal): Promise<boolean> {
    const subjects = own(held, 'subjects');
    if (!Array.isArray(subjects) || subjects.length === 0) return false;
    const ops = [
      { op: 'test', path: '/metadata/uid', value: metadata.uid },
      { op: 'remove', path: '/subjects' },
    ] as const;
    try {
      await this.#client.jsonPatch(roleBindings, metadata, ops, { signal });
    } catch (error) {
      // It has gone meanwhile, or its Role has, without which it gives nothing and cannot be changed.
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
