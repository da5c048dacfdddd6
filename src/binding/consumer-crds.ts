import { consumerKinds } from '../api/binding/kinds.ts';
import { bindVersion, crdRevisionAnnotation } from '../api/binding/names.ts';
import { type KubeObject, keyOf } from '../api/object.ts';
import { customResourceDefinitions } from '../api/resources.ts';
import { customResourceDefinition } from '../api/schema/crd.ts';
import type { Kind } from '../api/schema/kind.ts';
import { Controller } from '../engine/controller.ts';
import { after, done, notReady, type Reconciler, type Result } from '../engine/result.ts';
import type { Source } from '../engine/source.ts';
import { fromSubscription } from '../engine/sources/from-subscription.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import { type JsonObject, own } from '../kit/json-value.ts';
import type { Client } from '../kube/client.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isAlreadyExists, isConflict } from '../kube/errors.ts';
import type { Projected, Store } from '../kube/store.ts';
import type { Log } from '../observe/log.ts';
import { objectsIn } from './stores/common-view.ts';
import { areNamesTaken, isEstablished } from './stores/consumer-stores.ts';

export interface ConsumerCrdDeps {
  readonly cluster: Cluster;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Installs the CRDs of bindings and bundles, and waits until the API server serves them. Logs and
 * retries all errors. Rejects with CodedError `Aborted` if `signal` aborts first.
 */
export async function installConsumerCrds(deps: ConsumerCrdDeps, signal: AbortSignal): Promise<void> {
  await Promise.all(consumerKinds.map((kind) => install(consumerCrd(kind), deps, signal)));
}

async function install(wanted: KubeObject, deps: ConsumerCrdDeps, signal: AbortSignal): Promise<void> {
  const { name } = wanted.metadata;
  const handle = deps.cluster.watch({
    resource: customResourceDefinitions,
    fieldSelector: `metadata.name=${name}`,
    project: projectCrd,
  });
  const served = new AbortController();
  const start: Source = { name: 'start', start: async (emit) => emit(name, 'start') };
  const changes = fromSubscription('crd', handle.store, ({ key }) => [key]);
  const controller = new Controller({
    ...deps,
    name: `install-${name}`,
    sources: [start, changes],
    reconciler: installer(wanted, handle.store, deps, () => served.abort()),
    workers: 1,
  });
  try {
    await controller.run(AbortSignal.any([signal, served.signal]));
    if (!served.signal.aborted)
      throw new CodedError('Aborted', `the installation of ${name} ended before the CRD was served`);
  } finally {
    handle.release();
  }
}

function installer(
  wanted: KubeObject,
  store: Store<CrdObject>,
  { client, log }: ConsumerCrdDeps,
  onServed: () => void,
): Reconciler {
  const reconcile = async (name: string, signal: AbortSignal): Promise<Result> => {
    const found = store.get(name)?.object;
    const step = planConsumerCrd(found, wanted);
    if (step.do === 'nothing') {
      if (found?.metadata.deletionTimestamp !== undefined) return notReady('the end of the deletion');
      // No watch shows when a kind is served.
      if (!step.established && !(await isServed(wanted, client, signal)))
        return after(found && areNamesTaken(found) ? rareCheckMs : checkMs);
      onServed();
      return done;
    }
    try {
      if (step.do === 'create') await client.create(customResourceDefinitions, step.object, { signal });
      else await client.mergePatch(customResourceDefinitions, { name }, step.patch, { signal });
      log.info(`CustomResourceDefinition ${step.do === 'create' ? 'created' : 'updated'}`, { name });
    } catch (error) {
      // Another client wrote first; the event of its write enqueues the name.
      if (!isAlreadyExists(error) && !isConflict(error)) throw error;
    }
    return done;
  };
  return { reconcile };
}

/** By a list, because some API servers serve a kind seconds before its CRD is established. */
function isServed({ spec }: KubeObject, client: Client, signal: AbortSignal): Promise<boolean> {
  const path = `/apis/${own(spec, 'group')}/${bindVersion}/${own(own(spec, 'names'), 'plural')}?limit=1`;
  return client.raw(path, { signal }).then(
    () => true,
    () => false,
  );
}

const checkMs = 1_000;
const rareCheckMs = 60_000;

interface CrdObject extends Projected {
  readonly object: KubeObject;
}

function projectCrd(object: KubeObject): CrdObject {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return { key: keyOf(object.metadata), uid, resourceVersion, object };
}

/** Increase it with a change that must reach installed CRDs. */
const revision = 1;

type CrdStep =
  | { readonly do: 'create'; readonly object: KubeObject }
  | { readonly do: 'patch'; readonly patch: unknown }
  | { readonly do: 'nothing'; readonly established: boolean };

export function consumerCrd(kind: Kind): KubeObject {
  const crd = customResourceDefinition(kind);
  return { ...crd, metadata: { ...crd.metadata, annotations: { [crdRevisionAnnotation]: String(revision) } } };
}

/**
 * Changes a CRD that is there only if it does not serve `bindVersion` with a status, or is an older
 * revision of drawbridge. Removes no version: objects may be stored in it.
 */
export function planConsumerCrd(found: KubeObject | undefined, wanted: KubeObject): CrdStep {
  if (!found) return { do: 'create', object: wanted };
  // A write would have no effect; the event of the deletion leads to a create.
  if (found.metadata.deletionTimestamp !== undefined) return { do: 'nothing', established: false };
  if (servesRequiredVersion(found) && !isOlderRevision(found))
    return { do: 'nothing', established: isEstablished(found) };
  return { do: 'patch', patch: patchOf(found, wanted) };
}

function servesRequiredVersion(found: KubeObject): boolean {
  const version = versionsOf(found).find((candidate) => own(candidate, 'name') === bindVersion);
  return own(version, 'served') === true && own(own(version, 'subresources'), 'status') !== undefined;
}

function isOlderRevision({ metadata }: KubeObject): boolean {
  const installedRevision = metadata.annotations?.[crdRevisionAnnotation];
  return installedRevision !== undefined && /^\d{1,9}$/.test(installedRevision) && Number(installedRevision) < revision;
}

/** Adds versions and replaces {@link bindVersion}; of an older revision, all it has in common. */
function patchOf(found: KubeObject, wanted: KubeObject): unknown {
  const installed = new Map(versionsOf(found).map((version) => [own(version, 'name'), version]));
  const wantedVersions = versionsOf(wanted).map((version) => {
    const name = own(version, 'name');
    const kept = name === bindVersion || isOlderRevision(found) ? undefined : installed.get(name);
    installed.delete(name);
    return kept ? notStored(kept) : version;
  });
  return {
    metadata: {
      uid: found.metadata.uid,
      resourceVersion: found.metadata.resourceVersion,
      annotations: wanted.metadata.annotations,
    },
    spec: {
      names: own(wanted.spec, 'names'),
      versions: [...wantedVersions, ...[...installed.values()].map(notStored)],
    },
  };
}

const notStored = (version: JsonObject): JsonObject => ({ ...version, storage: false });

function versionsOf({ spec }: KubeObject): JsonObject[] {
  return objectsIn(spec, 'versions');
}
