import { syncerFinalizer } from '../../api/binding/names.ts';
import type { KubeObject, Resource } from '../../api/object.ts';
import { customResourceDefinitions } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { listIn, own } from '../../kit/json-value.ts';
import { withDeadline } from '../../kit/promises.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNotFound } from '../../kube/errors.ts';
import { text } from '../../kube/fields.ts';
import type { Projected } from '../../kube/store.ts';
import { commonView } from '../stores/common-view.ts';
import { type CrdView, isEstablished } from '../stores/consumer-stores.ts';

/** Removes the finalizer `kubebind.io/syncer` from all objects of a CRD, once. */
export class Releaser {
  readonly #deps: ReleaseDeps;
  readonly #released = new Set<string>();

  constructor(deps: ReleaseDeps) {
    this.#deps = deps;
  }

  unreleased(crds: readonly CrdView[]): CrdView[] {
    return crds.filter(({ uid }) => !this.#released.has(uid));
  }

  /** A CRD that is gone or not served counts as released. Rejects at the first that fails. */
  async release(crds: readonly CrdView[], signal: AbortSignal): Promise<void> {
    for (const { name, uid } of this.unreleased(crds)) {
      await releaseObjects(this.#deps, name, signal);
      this.#released.add(uid);
    }
  }

  /** When a syncer may add the finalizer again, or when the definitions are deleted. */
  forget(crds: readonly CrdView[]): void {
    for (const { uid } of crds) this.#released.delete(uid);
  }
}

interface ReleaseDeps {
  readonly consumer: Cluster;
  readonly client: Client;
  readonly clock: Clock;
}

interface ObjectWithFinalizer extends Projected {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly finalizers: readonly string[];
}

const maxConcurrentPatches = 16;
const listTimeoutMs = 60_000;

/** No syncer may run for the kind. Rejects after 60 s or if a patch fails; a retry goes on. */
async function releaseObjects(deps: ReleaseDeps, crdName: string, signal: AbortSignal): Promise<void> {
  const resource = await servedResource(deps.client, crdName, signal);
  if (!resource) return;
  const objects = await objectsWithFinalizer(deps, resource, signal);
  const next = objects.values();
  const failures: unknown[] = [];
  const worker = async (): Promise<void> => {
    for (const object of next) {
      signal.throwIfAborted();
      await removeFinalizer(deps.client, resource, object, signal).catch((error: unknown) => failures.push(error));
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

/** Through a store, which keeps only the objects with the finalizer, as views. */
async function objectsWithFinalizer(
  { consumer, clock }: ReleaseDeps,
  resource: Resource,
  signal: AbortSignal,
): Promise<ObjectWithFinalizer[]> {
  const { store, release: close } = consumer.watch({ resource, project: viewWithFinalizer });
  try {
    await withDeadline(clock, listTimeoutMs, store.whenSynced(signal));
    return [...store.list()];
  } catch (error) {
    signal.throwIfAborted();
    const why = store.failing?.reason ?? describe(error);
    throw new Error(
      `the objects of ${resource.plural}.${resource.group} could not be listed: ${why}; check that the konnector has permission to list and watch them`,
    );
  } finally {
    close();
  }
}

function viewWithFinalizer(object: KubeObject): ObjectWithFinalizer | undefined {
  const view = commonView(object);
  if (!view?.finalizers.includes(syncerFinalizer)) return undefined;
  const { key, uid, resourceVersion, name, finalizers } = view;
  return { key, uid, resourceVersion, name, namespace: object.metadata.namespace, finalizers };
}

async function removeFinalizer(
  client: Client,
  resource: Resource,
  object: ObjectWithFinalizer,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace, uid, resourceVersion } = object;
  const finalizers = object.finalizers.filter((finalizer) => finalizer !== syncerFinalizer);
  const patch = { metadata: { uid, resourceVersion, finalizers } };
  try {
    await client.mergePatch(resource, namespace ? { name, namespace } : { name }, patch, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
