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

/**
 * Releases the objects of a CustomResourceDefinition: removes the finalizer `kubebind.io/syncer` from all of them. Remembers the released
 * definitions.
 */
export class Releaser {
  readonly #deps: ReleaseDeps;
  /** uids of the released CustomResourceDefinitions. */
  readonly #released = new Set<string>();

  constructor(deps: ReleaseDeps) {
    this.#deps = deps;
  }

  /** The definitions of `crds` that `release` has not released. */
  unreleased(crds: readonly CrdView[]): CrdView[] {
    return crds.filter(({ uid }) => !this.#released.has(uid));
  }

  /**
   * Releases the objects of each unreleased definition, one definition after the other. A definition that does not exist or is not served
   * counts as released, because its objects cannot be read. Rejects at the first definition that fails; later definitions stay unreleased.
   */
  async release(crds: readonly CrdView[], signal: AbortSignal): Promise<void> {
    for (const { name, uid } of this.unreleased(crds)) {
      await releaseObjects(this.#deps, name, signal);
      this.#released.add(uid);
    }
  }

  /** Call when a syncer may add the finalizer to objects of these definitions again, or when the definitions are deleted. */
  forget(crds: readonly CrdView[]): void {
    for (const { uid } of crds) this.#released.delete(uid);
  }
}

interface ReleaseDeps {
  /** For watches. */
  readonly consumer: Cluster;
  /** Client of the consumer. It writes only while this replica is the leader. */
  readonly client: Client;
  readonly clock: Clock;
}

interface ObjectWithFinalizer extends Projected {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly finalizers: readonly string[];
}

/** Maximum number of concurrent patches. */
const maxConcurrentPatches = 16;
/** Maximum wait for the list of the objects, milliseconds. */
const listTimeoutMs = 60_000;

/**
 * Removes the finalizer `kubebind.io/syncer` from every object of the kind, if the kind is served. The copies of these objects stay in the
 * provider. The caller ensures that no syncer runs for the kind meanwhile. Rejects if the list takes over 60 s, or if a patch fails, for
 * example with a conflict. A retry repeats only the failed patches.
 */
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

/** The resource to read objects with; undefined if the definition is not established or serves no version. */
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

/** Lists through a store, which keeps only the objects with the finalizer and only the fields of the view. */
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
