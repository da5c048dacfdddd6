import { consumerKinds } from '../api/binding/kinds.ts';
import { type KubeObject, keyOf } from '../api/object.ts';
import { customResourceDefinitions } from '../api/resources.ts';
import { Controller } from '../engine/controller.ts';
import { done, notReady, type Reconciler } from '../engine/result.ts';
import type { Source } from '../engine/source.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isAlreadyExists, isConflict } from '../kube/errors.ts';
import type { Projected, StoreHandle } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { consumerCrd, planConsumerCrd } from './consumer-crd-plan.ts';

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
