import { applyJsonPatch } from '../../../../src/access/builders/json-patch.ts';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../../../../src/api/object.ts';
import { pods } from '../../../../src/api/resources.ts';
import { type Clock, formatTime } from '../../../../src/kit/clock.ts';
import { unlessAborted } from '../../../../src/kit/promises.ts';
import type { AccessQuestion, CallOptions, Client } from '../../../../src/kube/client.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../../src/kube/store.ts';

export interface Call {
  readonly verb: 'get' | 'list' | 'create' | 'patch' | 'apply' | 'delete';
  readonly plural: string;
  readonly name: string;
}

type Stored = KubeObject & { metadata: { uid: string } };

/** The part of an API server that access uses, in memory, for faults at specific calls, which a real API server does not produce on demand. */
export class MemoryCluster implements Cluster {
  readonly calls: Call[] = [];
  /** Called before each call is answered. Throws the answer, or delays it. */
  fault: (call: Call) => void | Promise<void> = () => {};
  /** Answers SubjectAccessReviews. */
  allows: (question: AccessQuestion) => boolean = () => false;
  /** While true, deleted Pods stay. */
  nodeIsDown = false;
  /** The kind whose watch events are held back until `deliverEvents`, as if its watch lagged. */
  lagging: Resource | undefined;
  readonly #clock: Clock;
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #stores: InformerStore<Projected>[] = [];
  readonly #held: (() => void)[] = [];
  #version = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    const store = new InformerStore(spec, this.#clock, silentLog);
    const list = store.beginList();
    list.add([...this.#of(spec.resource).values()]);
    list.commit();
    this.#stores.push(store as unknown as InformerStore<Projected>);
    return { store, release: () => store.close() };
  }

  identity(): Promise<string> {
    return Promise.resolve('memory');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  names(resource: Resource): string[] {
    return [...this.#of(resource).keys()];
  }

  all(resource: Resource): Stored[] {
    return [...this.#of(resource).values()];
  }

  find(resource: Resource, name: ObjectName): Stored | undefined {
    return this.#of(resource).get(keyOf(name));
  }

  /** Stores the object, with the metadata that the API server would set. */
  put(resource: Resource, object: KubeObject): Stored {
    const key = keyOf(object.metadata);
    const before = this.#of(resource).get(key);
    this.#version++;
    const stored: Stored = {
      ...structuredClone(object),
      metadata: {
        creationTimestamp: formatTime(this.#clock.now()),
        generation: 1,
        ...structuredClone(object.metadata),
        uid: object.metadata.uid ?? before?.metadata.uid ?? `uid-${this.#version}`,
        resourceVersion: String(this.#version),
      },
    };
    this.#of(resource).set(key, stored);
    this.#notify(resource, before ? 'MODIFIED' : 'ADDED', stored);
    return stored;
  }

  /** Removes the object at once, even if it has finalizers. */
  drop(resource: Resource, name: ObjectName): void {
    const object = this.find(resource, name);
    if (!object) return;
    this.#of(resource).delete(keyOf(name));
    this.#version++;
    this.#notify(resource, 'DELETED', {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    });
  }

  /** Lets such calls fail, the next `times` of them. */
  fail(verb: Call['verb'], plural: string, { times = Number.POSITIVE_INFINITY, error = notNow } = {}): void {
    let left = times;
    this.fault = (call) => {
      if (call.verb === verb && call.plural === plural && left-- > 0) throw error;
    };
  }

  readonly client: Client = {
    leaderOnly: () => this.client,
    urgent: () => this.client,
    get: async (resource, name, options) => this.#called('get', resource, name, options),
    create: async (resource, object, options) => {
      if (options?.dryRun) return object;
      await this.#recordCall('create', resource, object.metadata, options);
      if (this.find(resource, object.metadata)) throw new ApiError(409, 'AlreadyExists', 'already exists');
      return this.put(resource, object);
    },
    mergePatch: async (resource, name, patch, options) => {
      await this.#called('patch', resource, name, options);
      // Reads the object after the fault, so that no other write comes between the read and the write of a patch.
      const before = this.#of(resource).get(keyOf(name));
      if (!before) throw new ApiError(404, 'NotFound', `${resource.plural} ${keyOf(name)} not found`);
      const { resourceVersion } = (patch as { metadata?: { resourceVersion?: string } }).metadata ?? {};
      if (resourceVersion !== undefined && resourceVersion !== before.metadata.resourceVersion) {
        throw new ApiError(409, 'Conflict', 'the object has been modified');
      }
      return this.put(resource, merged(before, patch) as unknown as KubeObject);
    },
    jsonPatch: async (resource, name, ops, options) => {
      const before = await this.#called('patch', resource, name, options);
      const patched = applyJsonPatch(structuredClone(before), ops);
      if ('violation' in patched) throw new ApiError(422, 'Invalid', patched.violation.message);
      const after = patched.document as Stored;
      if (after.metadata.deletionTimestamp === undefined || after.metadata.finalizers?.length)
        return this.put(resource, after);
      this.drop(resource, name);
      return after;
    },
    delete: async (resource, name, { uid, resourceVersion, gracePeriodSeconds, signal } = {}) => {
      await this.#recordCall('delete', resource, name, signal && { signal });
      const object = this.find(resource, name);
      if (!object) return 'absent';
      if (uid !== undefined && uid !== object.metadata.uid) throw new ApiError(409, 'Conflict', 'the uid differs');
      if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'the version differs');
      const { finalizers = [], deletionTimestamp = formatTime(this.#clock.now()) } = object.metadata;
      const stays = finalizers.length > 0 || (resource === pods && this.nodeIsDown);
      if (!stays) {
        this.drop(resource, name);
        return 'deleted';
      }
      const grace = gracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds: gracePeriodSeconds };
      const held = this.put(resource, { ...object, metadata: { ...object.metadata, deletionTimestamp, ...grace } });
      return finalizers.length > 0 ? { held } : 'deleted';
    },
    isAllowed: (question) => Promise.resolve(this.allows(question)),
    reviewToken: () => Promise.resolve(undefined),
    list: async (resource, { namespace, labelSelector, signal } = {}) => {
      await this.#recordCall('list', resource, { name: namespace ?? '' }, signal && { signal });
      const [, label = '', values] = labelSelector?.match(/^(.+) in \((.+)\)$/) ?? [];
      if (labelSelector !== undefined && values === undefined) throw new Error(`unknown selector ${labelSelector}`);
      const all = [...this.#of(resource).values()].filter(
        ({ metadata }) => values === undefined || values.split(',').includes(metadata.labels?.[label] ?? ''),
      );
      return {
        items: all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace),
        resourceVersion: String(this.#version),
      };
    },
    apply: async (resource, object) => {
      await this.#recordCall('apply', resource, object.metadata);
      return this.put(resource, merged(this.find(resource, object.metadata) ?? {}, object) as KubeObject);
    },
    replace: unused,
    createToken: unused,
    raw: unused,
  };

  async #called(verb: Call['verb'], resource: Resource, name: ObjectName, options: CallOptions = {}): Promise<Stored> {
    await this.#recordCall(verb, resource, name, options);
    const object = this.find(resource, name);
    if (!object) throw new ApiError(404, 'NotFound', `${resource.plural} ${keyOf(name)} not found`);
    return object;
  }

  async #recordCall(
    verb: Call['verb'],
    { plural }: Resource,
    name: ObjectName,
    { signal }: CallOptions = {},
  ): Promise<void> {
    const call = { verb, plural, name: keyOf(name) };
    this.calls.push(call);
    const answer = Promise.resolve(this.fault(call));
    await (signal ? unlessAborted(answer, signal) : answer);
  }

  #of(resource: Resource): Map<string, Stored> {
    const objects = this.#objects.get(resource.plural) ?? new Map<string, Stored>();
    this.#objects.set(resource.plural, objects);
    return objects;
  }

  /** The watch of `lagging` broke, and no list has followed. */
  loseEvents(): void {
    this.lagging = undefined;
    this.#held.length = 0;
  }

  deliverEvents(): void {
    this.lagging = undefined;
    for (const deliver of this.#held.splice(0)) deliver();
  }

  #notify(resource: Resource, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Stored): void {
    if (resource.plural === this.lagging?.plural) {
      this.#held.push(() => this.#notify(resource, type, object));
      return;
    }
    for (const store of this.#stores) {
      if (store.resource.plural === resource.plural) store.apply(type, object, object.metadata.resourceVersion ?? '');
    }
  }
}

const notNow: Error = new ApiError(500, 'InternalError', 'not now');

const unused = (): Promise<never> => Promise.reject(new Error('access makes no such call'));

/** RFC 7386. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as object) };
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field];
    else result[field] = merged(result[field], value);
  }
  return result;
}
