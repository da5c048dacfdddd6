import { ensure, remove } from './cluster-objects.ts';
import { type ComponentsDeps, configOf, notReadyUnlessAbsent, notReadyUnlessPresent, textAt } from './inputs.ts';
import type { Component, Outcome, RunContext } from './sdk/contract.ts';
import { type KubeObject, keyOf, type Resource } from './sdk/kubernetes.ts';
import { isRecord, listIn, own, quote } from './sdk/values.ts';

/** Of the Azure Service Operator. */
export const virtualNetworks: Resource = {
  group: 'network.azure.com',
  version: 'v1api20201101',
  plural: 'virtualnetworks',
  kind: 'VirtualNetwork',
  namespaced: true,
};

const name = 'network';
const regionPath = '/spec/cluster/region';
const cidrPath = configOf(name, 'cidr');
const resourceGroupPath = configOf(name, 'resourceGroup');
/** While the operator works on the VirtualNetwork. A watch of it usually triggers a run earlier. */
const requeueSeconds = 15;

/** Creates a virtual network, and publishes its name and, once known, its ID in Azure. */
export function networkComponent(deps: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      return run.request.operation === 'delete' ? tearDown(deps, run, entry) : reconcileNetwork(deps, run, entry);
    },
  };
}

async function reconcileNetwork(
  deps: ComponentsDeps,
  { request, signal }: RunContext,
  entry: KubeObject,
): Promise<Outcome> {
  const notReady = notReadyUnlessPresent(entry, regionPath, cidrPath);
  if (notReady) return notReady;
  const range = textAt(entry, cidrPath);
  if (range === undefined || !isIpv4Range(range)) {
    const found = range === undefined ? 'not a text' : quote(range);
    const message = `${cidrPath} is ${found}; it must be an IPv4 range with a prefix length of 8 to 29, such as 10.4.0.0/16; correct it in the entry`;
    return { outcome: 'Failed', message };
  }
  const spec = {
    location: textAt(entry, regionPath),
    addressSpace: { addressPrefixes: [range] },
    owner: { name: textAt(entry, resourceGroupPath) ?? 'clusters' },
  };
  const wanted = { ...identityOf(request.entry.id, entry), content: { spec } };
  return outcomeOf(await ensure(deps.management, wanted, signal));
}

async function tearDown(deps: ComponentsDeps, { request, signal }: RunContext, entry: KubeObject): Promise<Outcome> {
  // While these outputs exist, machines of the cluster may use the network.
  const notReady = notReadyUnlessAbsent(entry, '/status/outputs/cluster');
  if (notReady) return notReady;
  const identity = identityOf(request.entry.id, entry);
  const deletion = await remove(deps.management, identity, signal);
  if (deletion === 'absent') return { outcome: 'Deleted' };
  return {
    outcome: 'Progressing',
    requeueAfterSeconds: requeueSeconds,
    message: `Azure Service Operator has not deleted VirtualNetwork ${keyOf(identity.name)} yet`,
  };
}

const identityOf = (entryUid: string, entry: KubeObject) => ({
  resource: virtualNetworks,
  name: { namespace: entry.metadata.namespace ?? '', name: `vnet-${entryUid}` },
  entryUid,
});

/** From the operator's condition Ready; Failed if its severity is Error. */
function outcomeOf({ metadata, status }: KubeObject): Outcome {
  const ready = listIn(status, 'conditions').find((condition) => own(condition, 'type') === 'Ready');
  const isCurrent = own(ready, 'observedGeneration') === metadata.generation;
  if (isCurrent && own(ready, 'status') === 'True') {
    const id = own(status, 'id');
    const vnetId = typeof id === 'string' ? { vnetId: id } : {};
    return { outcome: 'Done', outputs: { [name]: { vnetName: metadata.name, ...vnetId } } };
  }
  const message = messageOf(ready) ?? `Azure Service Operator has not reconciled VirtualNetwork ${keyOf(metadata)} yet`;
  if (isCurrent && own(ready, 'severity') === 'Error') return { outcome: 'Failed', message };
  return { outcome: 'Progressing', requeueAfterSeconds: requeueSeconds, message };
}

function messageOf(condition: unknown): string | undefined {
  const message = isRecord(condition) ? own(condition, 'message') : undefined;
  return typeof message === 'string' && message !== '' ? message : undefined;
}

function isIpv4Range(text: string): boolean {
  const [, address = '', bits = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text) ?? [];
  return (
    address !== '' && address.split('.').every((part) => Number(part) <= 255) && Number(bits) >= 8 && Number(bits) <= 29
  );
}
