import { syncerFinalizer } from '../../api/binding/names.ts';
import type { KubeObject, ObjectMeta, Resource } from '../../api/object.ts';
import { customResourceDefinitions } from '../../api/resources.ts';
import { describe } from '../../kit/errors.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { text } from '../../kube/fields.ts';
import { type CrdView, isEstablished } from '../stores/consumer-stores.ts';

/** Removes the finalizer `kubebind.io/syncer` from all objects of a CRD, once. */
export class Releaser {
  readonly #client: Client;
  readonly #released = new Set<string>();

  constructor({ client }: { readonly client: Client }) {
    this.#client = client;
  }

  unreleased(crds: readonly CrdView[]): CrdView[] {
    return crds.filter(({ uid }) => !this.#released.has(uid));
  }

  /** A CRD that is gone or not served counts as released. Rejects at the first that fails. */
  async release(crds: readonly CrdView[], signal: AbortSignal): Promise<void> {
    for (const { name, uid } of this.unreleased(crds)) {
      await releaseObjects(this.#client, name, signal);
      this.#released.add(uid);
    }
  }

  /** When a syncer may add the finalizer again, or when the definitions are deleted. */
  forget(crds: readonly CrdView[]): void {
    for (const { uid } of crds) this.#released.delete(uid);
  }
}

const maxConcurrentPatches = 16;

/** No syncer may run for the kind. Rejects if a patch fails; a retry goes on. */
async function releaseObjects(client: Client, crdName: string, signal: AbortSignal): Promise<void> {
  const resource = await servedResource(client, crdName, signal);
  if (!resource) return;
  const objects = await objectsWithFinalizer(client, resource, signal);
  const next = objects.values();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const object of next) {
      signal.throwIfAborted();
      await removeFinalizer(client, resource, object, signal).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: maxConcurrentPatches }, worker));
  if (failures.length > 0) {
    const message = `${failures.length} of ${objects.length} objects of ${crdName} still have the finalizer ${syncerFinalizer}; the server retries`;
    throw new Error(message, { cause: failures[0] });
  }
}

async function servedResource(client: Client, name: string, signal: AbortSignal): Promise<Resource | undefined> {
  const crd = await findObject(client, customResourceDefinitions, { name }, { signal });
  return crd && resourceOf(crd);
}

function resourceOf(crd: KubeObject): Resource | undefined {
  const { spec } = crd;
  const version = listIn(spec, 'versions').find((candidate) => own(candidate, 'served') === true);
  const names = own(spec, 'names');
  const group = text(spec, 'group');
  const plural = text(names, 'plural');
  const kind = text(names, 'kind');
  const served = text(version, 'name');
  if (!isEstablished(crd) || !group || !plural || !kind || !served) return undefined;
  return { group, version: served, plural, kind, namespaced: text(spec, 'scope') === 'Namespaced' };
}

async function objectsWithFinalizer(client: Client, resource: Resource, signal: AbortSignal): Promise<ObjectMeta[]> {
  try {
    const { items } = await client.list(resource, { signal });
    return items.map(({ metadata }) => metadata).filter(({ finalizers }) => finalizers?.includes(syncerFinalizer));
  } catch (error) {
    signal.throwIfAborted();
    const message = `the objects of ${resource.plural}.${resource.group} could not be listed: ${describe(error)}; check that the konnector has permission to list them`;
    throw new Error(message, { cause: error });
  }
}

async function removeFinalizer(
  client: Client,
  resource: Resource,
  { name, namespace, uid, resourceVersion, finalizers: before = [] }: ObjectMeta,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = before.filter((finalizer) => finalizer !== syncerFinalizer);
  const patch = { metadata: { uid, resourceVersion, finalizers } };
  try {
    await client.mergePatch(resource, namespace ? { name, namespace } : { name }, patch, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
