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
 * Sees to it that the consumer serves APIServiceBindings and APIServiceBindingBundles, and resolves as soon as it does. Whatever stands
 * in the way, missing rights and an API server that does not answer included, is logged and tried again until `signal` aborts.
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
      // Another replica was faster: what it did comes as an event.
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

/** Raised whenever what the schemas say changes in a way that consumers should get. */
const revision = 1;

type CrdStep =
  | { readonly do: 'create'; readonly object: KubeObject }
  /** A merge patch, void once the CRD has changed in between. */
  | { readonly do: 'patch'; readonly patch: unknown }
  /** It serves what we need, or will as soon as the API server has looked at it. */
  | { readonly do: 'wait'; readonly established: boolean };

/** The CRD of a kind that we install in the consumer, marked as ours. */
export function consumerCrd(kind: Kind): KubeObject {
  const crd = customResourceDefinition(kind);
  return { ...crd, metadata: { ...crd.metadata, annotations: { [crdRevisionAnnotation]: String(revision) } } };
}

/**
 * What to do about a CRD that may be there already, put there by us, by kube-bind or by whoever manages the cluster. It is left as it
 * is unless it lacks what we need or is an older one of ours, and no version that it has is ever dropped: objects may be stored in it.
 */
export function planConsumerCrd(found: KubeObject | undefined, wanted: KubeObject): CrdStep {
  if (!found) return { do: 'create', object: wanted };
  // Going: what we would write has no effect, and once it is gone it is created.
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
