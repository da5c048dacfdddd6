import { type DesiredObject, ensure, remove } from './cluster-objects.ts';
import {
  type ComponentsDeps,
  configOf,
  notReadyUnlessAbsent,
  notReadyUnlessPresent,
  textAt,
  wholeNumberAt,
} from './inputs.ts';
import type { Component, Outcome, RunContext } from './sdk/contract.ts';
import { configMaps, findObject, type KubeObject, keyOf, type Resource } from './sdk/kubernetes.ts';
import { listIn, own } from './sdk/values.ts';

export const shoots: Resource = {
  group: 'core.gardener.cloud',
  version: 'v1beta1',
  plural: 'shoots',
  kind: 'Shoot',
  namespaced: true,
};

const componentName = 'cluster';
const regionPath = '/spec/cluster/region';
const vnetNamePath = '/status/outputs/network/vnetName';
/** Gardener deletes only a Shoot with this annotation. */
const deletionConfirmation = { 'confirmation.gardener.cloud/deletion': 'true' };
/** While Gardener works on the Shoot. A watch of it usually triggers a run earlier. */
const requeueSeconds = 30;

/** Creates a Gardener cluster, and publishes shootName, endpoint, ca, and kubernetesVersion. */
export function clusterComponent(deps: ComponentsDeps): Component {
  return {
    name: componentName,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      return run.request.operation === 'delete' ? tearDown(deps, run, entry) : reconcileCluster(deps, run, entry);
    },
  };
}

/** 14 characters: Gardener limits the length. */
export const shootName = (entryUid: string): string => `c-${entryUid.replaceAll('-', '').slice(0, 12)}`;

async function reconcileCluster(
  deps: ComponentsDeps,
  { request, signal }: RunContext,
  entry: KubeObject,
): Promise<Outcome> {
  const notReady = notReadyUnlessPresent(entry, regionPath, vnetNamePath);
  if (notReady) return notReady;
  const wanted = { ...identityOf(request.entry.id, entry), content: { spec: specOf(entry) } };
  const shoot = await ensure(deps.management, wanted, signal);
  const unfinished = unfinishedOutcome(shoot);
  return unfinished ?? publish(deps, wanted, shoot, signal);
}

function specOf(entry: KubeObject): Readonly<Record<string, unknown>> {
  const workers = wholeNumberAt(entry, configOf(componentName, 'workers')) ?? 1;
  const machine = { type: textAt(entry, configOf(componentName, 'machineType')) ?? 'Standard_D4s_v5' };
  return {
    region: textAt(entry, regionPath),
    cloudProfile: { kind: 'CloudProfile', name: textAt(entry, configOf(componentName, 'cloudProfile')) ?? 'az' },
    kubernetes: { version: textAt(entry, configOf(componentName, 'kubernetesVersion')) ?? '1.36.0' },
    provider: {
      type: 'azure',
      infrastructureConfig: { networks: { vnet: { name: textAt(entry, vnetNamePath) } } },
      workers: [{ name: 'worker', machine, minimum: workers, maximum: workers }],
    },
  };
}

/** While Gardener works, or after it failed; undefined once it reconciled this generation. */
function unfinishedOutcome({ metadata, status }: KubeObject): Outcome | undefined {
  const operation = own(status, 'lastOperation');
  const state = own(operation, 'state');
  const isDeletion = metadata.deletionTimestamp !== undefined || own(operation, 'type') === 'Delete';
  const isCurrent = own(status, 'observedGeneration') === metadata.generation;
  if (!isDeletion && isCurrent && state === 'Succeeded') return undefined;
  const description = textAt(operation, '/description') ?? `Gardener has not reconciled Shoot ${keyOf(metadata)} yet`;
  if (isCurrent && state === 'Failed') {
    // Gardener retries after the state Error, but not after Failed.
    const command = `kubectl annotate shoot ${metadata.name} -n ${metadata.namespace} gardener.cloud/operation=retry`;
    return { outcome: 'Failed', message: `${description}; correct the cause, then retry: ${command}` };
  }
  return { outcome: 'Progressing', requeueAfterSeconds: requeueSeconds, message: description };
}

async function publish(
  { management }: ComponentsDeps,
  { name: shootKey }: Pick<DesiredObject, 'name'>,
  { spec, status }: KubeObject,
  signal: AbortSignal,
): Promise<Outcome> {
  const caConfigMap = await findObject(
    management,
    configMaps,
    { ...shootKey, name: `${shootKey.name}.ca-cluster` },
    { signal },
  );
  const endpoint = endpointOf(status);
  const ca = own(own(caConfigMap, 'data'), 'ca.crt');
  if (endpoint === undefined || typeof ca !== 'string') {
    const message = `Gardener has not published the endpoint and the CA of Shoot ${keyOf(shootKey)} yet`;
    return { outcome: 'Progressing', requeueAfterSeconds: requeueSeconds, message };
  }
  const kubernetesVersion = own(own(spec, 'kubernetes'), 'version');
  return {
    outcome: 'Done',
    outputs: { [componentName]: { shootName: shootKey.name, endpoint, ca, kubernetesVersion } },
  };
}

/** For clients outside the cluster's network. */
function endpointOf(status: unknown): string | undefined {
  const external = listIn(status, 'advertisedAddresses').find((address) => own(address, 'name') === 'external');
  const url = own(external, 'url');
  return typeof url === 'string' && url !== '' ? url : undefined;
}

async function tearDown(deps: ComponentsDeps, { request, signal }: RunContext, entry: KubeObject): Promise<Outcome> {
  // While it exists, users of the kubeconfig may have resources in the cluster.
  const notReady = notReadyUnlessAbsent(entry, '/status/outputs/kubeconfig');
  if (notReady) return notReady;
  const identity = identityOf(request.entry.id, entry);
  const shoot = await findObject(deps.management, shoots, identity.name, { signal });
  if (!shoot) return { outcome: 'Deleted' };
  if (shoot.metadata.deletionTimestamp === undefined) {
    await ensure(deps.management, { ...identity, annotations: deletionConfirmation, content: {} }, signal);
    if ((await remove(deps.management, identity, signal)) === 'absent') return { outcome: 'Deleted' };
  }
  return {
    outcome: 'Progressing',
    requeueAfterSeconds: requeueSeconds,
    message: `Gardener has not deleted Shoot ${keyOf(identity.name)} yet`,
  };
}

const identityOf = (entryUid: string, entry: KubeObject) => ({
  resource: shoots,
  name: { namespace: entry.metadata.namespace ?? '', name: shootName(entryUid) },
  entryUid,
});
