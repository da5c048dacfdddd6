import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { KubeObject, Resource } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import { isRecord, listIn, own } from '../../kit/json-value.ts';
import type { Component, RunContext } from '../ports.ts';
import { ensure, remove } from './cluster-objects.ts';
import { type ComponentsDeps, configOf, missingOf, textAt, waitForAbsence } from './inputs.ts';

/** Resource of the Azure Service Operator. */
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
/** Interval while the operator works. A watch of the VirtualNetwork usually triggers a run earlier. */
const requeueSeconds = 15;

/** Creates a virtual network with Azure Service Operator. Publishes `vnetName`, the name of the object, and `vnetId`, if known. */
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
  const missing = missingOf(entry, regionPath, cidrPath);
  if (missing) return missing;
  const range = textAt(entry, cidrPath);
  if (range === undefined || !isIpv4Range(range)) {
    const found = range === undefined ? 'no text' : quote(range);
    const message = `${cidrPath} is ${found}; it must be an IPv4 range with a prefix length of 8 to 29, such as 10.4.0.0/16`;
    return { outcome: 'Failed', message };
  }
  const spec = {
    location: textAt(entry, regionPath),
    addressSpace: { addressPrefixes: [range] },
    owner: { name: textAt(entry, resourceGroupPath) ?? 'clusters' },
  };
  const wanted = { ...identityOf(deps, request.entry.id, entry), content: { spec } };
  return outcomeOf(await ensure(deps.management, wanted, signal));
}

async function tearDown(deps: ComponentsDeps, { request, signal }: RunContext, entry: KubeObject): Promise<Outcome> {
  // The machines of the cluster use the network.
  const inUse = waitForAbsence(entry, '/status/outputs/cluster');
  if (inUse) return inUse;
  const deletion = await remove(deps.management, identityOf(deps, request.entry.id, entry), signal);
  if (deletion === 'absent') return { outcome: 'Deleted' };
  return {
    outcome: 'Progressing',
    requeueAfterSeconds: requeueSeconds,
    message: 'the operator has not deleted the VirtualNetwork yet',
  };
}

const identityOf = ({ namespace }: ComponentsDeps, entryUid: string, entry: KubeObject) => ({
  resource: virtualNetworks,
  name: { namespace: namespace ?? entry.metadata.namespace ?? '', name: `vnet-${entryUid}` },
  entryUid,
});

/** The outcome from the operator's condition Ready. If it is not True, severity Error is permanent. */
function outcomeOf({ metadata, status }: KubeObject): Outcome {
  const ready = listIn(status, 'conditions').find((condition) => own(condition, 'type') === 'Ready');
  const isCurrent = own(ready, 'observedGeneration') === metadata.generation;
  if (isCurrent && own(ready, 'status') === 'True') {
    const id = own(status, 'id');
    const vnetId = typeof id === 'string' ? { vnetId: id } : {};
    return { outcome: 'Done', outputs: { [name]: { vnetName: metadata.name, ...vnetId } } };
  }
  const message = messageOf(ready) ?? 'the operator has not reconciled the VirtualNetwork yet';
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
