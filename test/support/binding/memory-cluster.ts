import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, keyOf, type ObjectName, type Resource } from '../../../src/api/object.ts';
import { type Clock, formatTime } from '../../../src/kit/clock.ts';
import { compileSelector } from '../../../src/kit/label-selector.ts';
import { mergePatched } from '../../../src/kit/merge-patch.ts';
import type { Client, WriteOptions } from '../../../src/kube/client.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { InformerStore } from '../../../src/kube/informer-store.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Projected, StoreHandle, StoreSpec } from '../../../src/kube/store.ts';

export interface Call {
  readonly verb: 'get' | 'list' | 'create' | 'patch' | 'replace' | 'delete';
  readonly plural: string;
  /** `namespace/name`, or the namespace of a list. */
  readonly name: string;
  readonly subresource?: string;
  readonly body?: unknown;
  readonly fieldManager?: string;
  /** uid precondition of a delete. */
  readonly uid?: string;
}

export type Stored = KubeObject & { metadata: { uid: string; resourceVersion: string; generation: number } };

/**
 * The part of an API server that the konnector uses, in memory. For faults at a specific call, which a real API server does not produce
 * on demand, and for counting writes. Every kind has a status subresource, except those in `withoutStatus`. A write without a change
 * causes no event. uid and resourceVersion in a body are preconditions. An object with finalizers is deleted once they are removed.
 */
export class MemoryCluster implements Cluster {
  readonly calls: Call[] = [];
  /** Called before each call is answered. Throws the answer, or delays it. */
  fault: (call: Call) => void | Promise<void> = () => {};
  /** Called after each write. Throws to lose the answer. */
  answered: (call: Call) => void | Promise<void> = () => {};
  /** Changes an object before it is stored, as admission or the schema would. */
  admit: (resource: Resource, object: KubeObject) => KubeObject = (_, object) => object;
  /** Delivers an event to one watch. A replacement may delay events, but must keep the order of each watch. */
  deliver: (watch: object, event: () => void) => void = (_, event) => event();
  /** Plurals of kinds without a status subresource. */
  readonly withoutStatus = new Set<string>();
  readonly #clock: Clock;
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #stores = new Map<InformerStore<Projected>, (object: KubeObject) => boolean>();
  #version = 100;
  #uid = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Writes so far, as `verb plural/subresource name`. */
  get writes(): string[] {
    return this.calls
      .filter(({ verb }) => verb !== 'get' && verb !== 'list')
      .map(({ verb, plural, subresource, name }) => `${verb} ${plural}${subresource ? `/${subresource}` : ''} ${name}`);
  }

  watch<T extends Projected>(spec: StoreSpec<T>): StoreHandle<T> {
    const store = new InformerStore(spec, this.#clock, silentLog);
    const selected = selects(spec);
    const list = store.beginList();
    list.add(this.#list(spec.resource).filter(selected));
    list.commit();
    const entry = store as unknown as InformerStore<Projected>;
    this.#stores.set(entry, selected);
    const release = (): void => {
      this.#stores.delete(entry);
      store.close();
    };
    return { store, release };
  }

  identity(): Promise<string> {
    return Promise.resolve('memory');
  }

  close(): Promise<void> {
    for (const store of this.#stores.keys()) store.close();
    this.#stores.clear();
    return Promise.resolve();
  }

  /** The number of open watches. */
  get watches(): number {
    return this.#stores.size;
  }

  list(resource: Resource): readonly Stored[] {
    return this.#list(resource);
  }

  find(resource: Resource, name: ObjectName): Stored | undefined {
    return this.#of(resource).get(keyOf(name));
  }

  /** Stores the object unchanged, with its status, as if another client had written it. */
  put(resource: Resource, object: KubeObject): Stored {
    const before = this.find(resource, object.metadata);
    const after = structuredClone(object);
    return this.#store(resource, before, {
      ...after,
      metadata: {
        creationTimestamp: before?.metadata.creationTimestamp ?? formatTime(this.#clock.now()),
        ...after.metadata,
        uid: after.metadata.uid ?? before?.metadata.uid ?? `uid-${++this.#uid}`,
      },
    });
  }

  /** Removes the object at once, even if it has finalizers. */
  drop(resource: Resource, name: ObjectName): void {
    const object = this.find(resource, name);
    if (!object) return;
    this.#of(resource).delete(keyOf(name));
    this.#notify(resource, 'DELETED', {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(++this.#version) },
    });
  }

  readonly client: Client = {
    leaderOnly: () => this.client,
    urgent: () => this.client,
    get: async (resource, name) => {
      await this.#note({ verb: 'get', plural: resource.plural, name: keyOf(name) });
      return this.#present(resource, name);
    },
    list: async (resource, options = {}) => {
      await this.#note({ verb: 'list', plural: resource.plural, name: options.namespace ?? '' });
      const items = this.#list(resource).filter(selects(options));
      return { items: structuredClone(items), resourceVersion: String(this.#version) };
    },
    create: async (resource, object, options) => {
      const call = callOf('create', resource, object.metadata, object, options);
      await this.#note(call);
      if (this.find(resource, object.metadata)) throw new ApiError(409, 'AlreadyExists', 'already exists');
      const { status, ...rest } = object;
      const { uid: _, resourceVersion: __, ...metadata } = object.metadata;
      const created = this.put(resource, {
        ...(this.#hasStatus(resource) ? rest : { ...rest, status }),
        metadata,
      } as KubeObject);
      await this.answered(call);
      return structuredClone(created);
    },
    mergePatch: async (resource, name, patch, options) => {
      const call = callOf('patch', resource, name, patch, options);
      await this.#note(call);
      const before = this.#present(resource, name);
      const after = this.#update(resource, before, mergePatched(before, patch) as KubeObject, options);
      await this.answered(call);
      return structuredClone(after);
    },
    replace: async (resource, object, options) => {
      await this.#note(callOf('replace', resource, object.metadata, object, options));
      const before = this.#present(resource, object.metadata);
      const metadata = {
        uid: before.metadata.uid,
        resourceVersion: before.metadata.resourceVersion,
        ...object.metadata,
      };
      if (metadata.uid !== before.metadata.uid) throw conflict('the uid differs');
      return this.#update(resource, before, { ...object, metadata }, options);
    },
    delete: async (resource, name, { uid, resourceVersion } = {}) => {
      const call: Call = { verb: 'delete', plural: resource.plural, name: keyOf(name), ...(uid ? { uid } : {}) };
      await this.#note(call);
      const object = this.find(resource, name);
      if (!object) return 'absent';
      if (uid !== undefined && uid !== object.metadata.uid) throw conflict('the uid differs');
      if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion)
        throw conflict('the resourceVersion differs');
      if (!object.metadata.finalizers?.length) this.drop(resource, name);
      else {
        const deletionTimestamp = object.metadata.deletionTimestamp ?? formatTime(this.#clock.now());
        this.#store(resource, object, { ...object, metadata: { ...object.metadata, deletionTimestamp } });
      }
      await this.answered(call);
      const held = this.find(resource, name);
      return held ? { held } : 'deleted';
    },
    isAllowed: () => Promise.resolve(true),
    jsonPatch: unused,
    apply: unused,
    createToken: unused,
    reviewToken: unused,
    raw: unused,
  };

  #update(resource: Resource, before: Stored, wanted: KubeObject, options: WriteOptions = {}): Stored {
    const { uid, resourceVersion } = wanted.metadata;
    if (resourceVersion !== before.metadata.resourceVersion) throw conflict('the object has been modified');
    // As the API server, which ignores the uid for the status of a custom resource.
    if (uid !== before.metadata.uid && options.subresource !== 'status') {
      const field = `metadata.uid: Invalid value: "${uid}": field is immutable`;
      throw new ApiError(422, 'Invalid', `422: ${resource.kind} "${before.metadata.name}" is invalid: ${field}`);
    }
    if (options.subresource === 'status') {
      if (!this.#hasStatus(resource)) throw new ApiError(404, 'NotFound', 'the server could not find the resource');
      return this.#store(resource, before, { ...before, status: wanted.status });
    }
    const { deletionTimestamp } = before.metadata;
    const metadata = { ...wanted.metadata, ...(deletionTimestamp && { deletionTimestamp }) };
    const status = this.#hasStatus(resource) ? before.status : wanted.status;
    return this.#store(resource, before, { ...wanted, metadata, status });
  }

  #store(resource: Resource, before: Stored | undefined, wanted: KubeObject): Stored {
    const key = keyOf(wanted.metadata);
    // As JSON: without undefined fields.
    const plain = JSON.parse(JSON.stringify(this.admit(resource, wanted))) as Stored;
    const generation = (before?.metadata.generation ?? 0) + (before && sameBeyond(before, plain) ? 0 : 1);
    const after: Stored = {
      ...plain,
      metadata: { ...plain.metadata, generation, resourceVersion: before?.metadata.resourceVersion ?? '' },
    };
    if (before && isDeepStrictEqual(before, after)) return before;
    after.metadata.resourceVersion = String(++this.#version);
    this.#of(resource).set(key, after);
    if (after.metadata.deletionTimestamp !== undefined && !after.metadata.finalizers?.length) {
      this.drop(resource, after.metadata);
      return after;
    }
    this.#notify(resource, before ? 'MODIFIED' : 'ADDED', after);
    return after;
  }

  #present(resource: Resource, name: ObjectName): Stored {
    const object = this.find(resource, name);
    if (!object) throw new ApiError(404, 'NotFound', `${resource.plural} ${keyOf(name)} not found`);
    return structuredClone(object);
  }

  async #note(call: Call): Promise<void> {
    this.calls.push(call);
    await this.fault(call);
  }

  #hasStatus({ plural }: Resource): boolean {
    return !this.withoutStatus.has(plural);
  }

  #list(resource: Resource): Stored[] {
    return [...this.#of(resource).values()];
  }

  #of({ group, plural }: Resource): Map<string, Stored> {
    const name = `${plural}.${group}`;
    const objects = this.#objects.get(name) ?? new Map<string, Stored>();
    this.#objects.set(name, objects);
    return objects;
  }

  #notify(resource: Resource, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Stored): void {
    for (const [store, selected] of [...this.#stores]) {
      if (store.resource.plural !== resource.plural || store.resource.group !== resource.group) continue;
      const seen = selected(object) ? type : 'DELETED';
      const copy = structuredClone(object);
      this.deliver(store, () => {
        if (seen !== 'DELETED' || store.get(keyOf(copy.metadata)))
          store.apply(seen, copy, copy.metadata.resourceVersion);
      });
    }
  }
}

const unused = (): Promise<never> => Promise.reject(new Error('the konnector makes no such call'));

const conflict = (message: string): ApiError => new ApiError(409, 'Conflict', message);

function callOf(
  verb: Call['verb'],
  { plural }: Resource,
  name: ObjectName,
  body: unknown,
  { subresource, fieldManager }: WriteOptions = {},
): Call {
  return {
    verb,
    plural,
    name: keyOf(name),
    body: structuredClone(body),
    ...(subresource ? { subresource } : {}),
    ...(fieldManager ? { fieldManager } : {}),
  };
}

/** Whether everything but metadata and status is equal. */
function sameBeyond(a: KubeObject, b: KubeObject): boolean {
  const { metadata: _, status: __, ...before } = a;
  const { metadata: ___, status: ____, ...after } = b;
  return isDeepStrictEqual(before, after);
}

/** Supports `key` and `key=value` in label selectors, and `metadata.name=` in field selectors. */
function selects(options: {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}): (object: KubeObject) => boolean {
  const { namespace, labelSelector, fieldSelector } = options;
  const matchExpressions = (labelSelector ? labelSelector.split(',') : []).map((part) => {
    const [key = '', value] = part.split('=');
    return value === undefined ? { key, operator: 'Exists' } : { key, operator: 'In', values: [value] };
  });
  const compiled = compileSelector({ matchExpressions });
  if ('error' in compiled) throw new Error(compiled.error);
  return ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) &&
    compiled.matches(metadata.labels) &&
    (fieldSelector === undefined || fieldSelector === `metadata.name=${metadata.name}`);
}
