import { consumerKinds } from '../api/binding/kinds.ts';
import { bindVersion, crdRevisionAnnotation } from '../api/binding/names.ts';
import { type KubeObject, keyOf } from '../api/object.ts';
import { customResourceDefinitions } from '../api/resources.ts';
import { customResourceDefinition } from '../api/schema/crd.ts';
import type { Kind } from '../api/schema/kind.ts';
import { Controller } from '../engine/controller.ts';
import { done, notReady, type Reconciler } from '../engine/result.ts';
import type { Source } from '../engine/source.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { type JsonObject, own } from '../kit/json-value.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isAlreadyExists, isConflict } from '../kube/errors.ts';
import type { Projected, StoreHandle } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { records } from './stores/common-view.ts';
import { isEstablished } from './stores/consumer-stores.ts';

export interface ConsumerCrdDeps {
  readonly cluster: Cluster;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Installs the CRDs of APIServiceBindings and APIServiceBindingBundles in the consumer. Resolves when the API server serves them. Errors,
 * including missing permissions and an unreachable API server, are logged and retried until `signal` aborts.
 */
export async function installConsumerCrds(deps: ConsumerCrdDeps, signal: AbortSignal): Promise<void> {
  await Promise.all(consumerKinds.map((kind) => install(consumerCrd(kind), deps, signal)));
}

async function install(wanted: KubeObject, deps: ConsumerCrdDeps, signal: AbortSignal): Promise<void> {
  const { name } = wanted.metadata;
  const handle = watchOne(deps.cluster, name);
  const established = new AbortController();
  const installer = new Installer(wanted, handle, deps, () => established.abort());
  const present: Source = { name: 'start', start: async (emit) => emit(name, 'start') };
  const changes = fromSubscription('crd', handle.store, ({ key }) => [key]);
  const controller = new Controller({
    ...deps,
    name: `install-${name}`,
    sources: [present, changes],
    reconciler: installer,
    workers: 1,
  });
  try {
    await controller.run(AbortSignal.any([signal, established.signal]));
    if (!established.signal.aborted) throw new CodedError('Aborted', `ended before ${name} was established`);
  } finally {
    handle.release();
  }
}

class Installer implements Reconciler {
  readonly #wanted: KubeObject;
  readonly #handle: StoreHandle<WholeCrd>;
  readonly #deps: ConsumerCrdDeps;
  readonly #onEstablished: () => void;

  constructor(wanted: KubeObject, handle: StoreHandle<WholeCrd>, deps: ConsumerCrdDeps, onEstablished: () => void) {
    this.#wanted = wanted;
    this.#handle = handle;
    this.#deps = deps;
    this.#onEstablished = onEstablished;
  }

  async reconcile(name: string, signal: AbortSignal) {
    const { client, log } = this.#deps;
    const step = planConsumerCrd(this.#handle.store.get(name)?.object, this.#wanted);
    if (step.do === 'wait') {
      if (step.established) this.#onEstablished();
      return notReady('Established');
    }
    try {
      if (step.do === 'create') await client.create(customResourceDefinitions, step.object, { signal });
      else await client.mergePatch(customResourceDefinitions, { name }, step.patch, { signal });
      log.info(`CustomResourceDefinition ${step.do === 'create' ? 'created' : 'brought up to date'}`, { name });
    } catch (error) {
      // Another client wrote it first. Its write arrives as an event.
      if (!isAlreadyExists(error) && !isConflict(error)) throw error;
    }
    return done;
  }
}

interface WholeCrd extends Projected {
  readonly object: KubeObject;
}

function watchOne(cluster: Cluster, name: string): StoreHandle<WholeCrd> {
  return cluster.watch({
    resource: customResourceDefinitions,
    fieldSelector: `metadata.name=${name}`,
    project: whole,
  });
}

function whole(object: KubeObject): WholeCrd {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return { key: keyOf(object.metadata), uid, resourceVersion, object };
}

/** Increase it when the schemas change in a way that consumers must get. */
const revision = 1;

type CrdStep =
  | { readonly do: 'create'; readonly object: KubeObject }
  /** A merge patch with the resourceVersion of the CRD. */
  | { readonly do: 'patch'; readonly patch: unknown }
  /** The CRD is sufficient. The API server serves it, or will once it is established. */
  | { readonly do: 'wait'; readonly established: boolean };

/** The CRD to install in the consumer, with our revision annotation. */
export function consumerCrd(kind: Kind): KubeObject {
  const crd = customResourceDefinition(kind);
  return { ...crd, metadata: { ...crd.metadata, annotations: { [crdRevisionAnnotation]: String(revision) } } };
}

/**
 * Plans the installation of a CRD that drawbridge, kube-bind, or an administrator may have installed already. It is changed only if it
 * lacks the version we need or is an older revision of ours. No version is ever removed, because objects may be stored in it.
 */
export function planConsumerCrd(found: KubeObject | undefined, wanted: KubeObject): CrdStep {
  if (!found) return { do: 'create', object: wanted };
  // A write to a CRD that is being deleted has no effect. After the deletion it is created.
  if (found.metadata.deletionTimestamp !== undefined) return { do: 'wait', established: false };
  if (servesWhatWeNeed(found) && !isOlderOfOurs(found)) return { do: 'wait', established: isEstablished(found) };
  return { do: 'patch', patch: patchOf(found, wanted) };
}

function servesWhatWeNeed(found: KubeObject): boolean {
  const version = versionsOf(found).find((one) => own(one, 'name') === bindVersion);
  return own(version, 'served') === true && own(own(version, 'subresources'), 'status') !== undefined;
}

function isOlderOfOurs({ metadata }: KubeObject): boolean {
  const mark = metadata.annotations?.[crdRevisionAnnotation];
  return mark !== undefined && /^\d{1,9}$/.test(mark) && Number(mark) < revision;
}

function patchOf(found: KubeObject, wanted: KubeObject): unknown {
  const theirs = new Map(versionsOf(found).map((version) => [own(version, 'name'), version]));
  const ours = versionsOf(wanted).map((version) => {
    const name = own(version, 'name');
    const kept = name === bindVersion || isOlderOfOurs(found) ? undefined : theirs.get(name);
    theirs.delete(name);
    return kept ? notStored(kept) : version;
  });
  return {
    metadata: {
      uid: found.metadata.uid,
      resourceVersion: found.metadata.resourceVersion,
      annotations: wanted.metadata.annotations,
    },
    spec: { names: own(wanted.spec, 'names'), versions: [...ours, ...[...theirs.values()].map(notStored)] },
  };
}

const notStored = (version: JsonObject): JsonObject => ({ ...version, storage: false });

function versionsOf({ spec }: KubeObject): JsonObject[] {
  return records(spec, 'versions');
}
