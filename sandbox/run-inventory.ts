import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { forceAnnotation } from '../src/api/inventory/names.ts';
import { inventoryExample } from '../test/support/inventory/examples.ts';
import { adminKubeconfig, ReferenceFleet } from '../test/support/inventory/reference-fleet.ts';
import { addressesOf } from './addresses.ts';
import { InventoryServer } from './inventory-server.ts';
import { Narrator } from './narrator.ts';
import { type Plane, startPlane } from './plane.ts';
import { until } from './wait.ts';

/**
 * `make run DEMO=inventory`: the demo of the inventory on two real control planes. An entry describes a cluster. Components create its
 * network, the cluster, and its kubeconfig, each once its inputs exist. Then an object in the cluster triggers a component, a user forces a new
 * kubeconfig, deletes the entry, and adds an existing cluster. The simulated cloud of the tests replaces Azure and Gardener.
 * With ONCE=1 the demo ends there; otherwise everything runs until Ctrl-C. Exit code 1 if a step failed.
 */
const namespace = 'fleet';
const rights = fileURLToPath(new URL('../examples/inventory/reference-rights.yaml', import.meta.url));
const proxy = 'deployment/connectivity-proxy -n connectivity-proxy';

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: one entry for each cluster, and components that create it');
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const components = ['kube-controller-manager'] as const;
  const onProgress = (line: string): void => console.log(`   ${line}`);
  const management = await startPlane({ components, onProgress });
  const managed = await startPlane({ components, onProgress });
  await management.kubectl(['create', 'namespace', namespace]);
  const server = await InventoryServer.start(management, { namespaces: [namespace] });
  // The account of the components, and the server's permissions on what it watches.
  await management.kubectl(['apply', '-f', rights]);
  const fleet = await ReferenceFleet.start({ management, managed, server, cloudDelayMs: 500 });
  try {
    await story(narrator, management, managed, fleet);
    if (process.env['ONCE']) return;
    await stayUp(narrator, management, managed, server);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}`);
    throw error;
  } finally {
    await fleet.close();
    await server.stop();
    await Promise.all([management.stop(), managed.stop()]);
  }
}

async function story(narrator: Narrator, management: Plane, managed: Plane, fleet: ReferenceFleet): Promise<void> {
  const here = runner(management);
  const there = runner(managed);
  const entries = `clusterinventories -n ${namespace}`;
  const runs = `reconcileruns -n ${namespace}`;
  const versionOf = (entry: string): Promise<string> =>
    here(`get clusterinventory/${entry} -n ${namespace} -o jsonpath={.status.outputs.kubeconfig.version}`);

  narrator.step('Two clusters: ours, with drawbridge and the entries, and one that the simulated cloud will create');

  narrator.evidence(`ours: ${management.server}`);
  narrator.evidence(`the other: ${managed.server}`);

  narrator.step(
    'Five components, each a program that the server calls over HTTP on this machine (a cluster needs HTTPS). No configuration defines their order',
  );
  for (const [name, value] of Object.entries(fleet.settings)) narrator.command(`export ${name}=${value}`);
  for (const { metadata } of fleet.registrations)
    narrator.command(`COMPONENT=${metadata.name} PORT=0 node examples/inventory/components/main.ts &`);
  await fleet.register();
  narrator.command('kubectl get componentreconcilers');
  narrator.evidence(await here('get componentreconcilers'));

  narrator.step('We create an entry without the region of the cluster');
  const [orders, legacy] = ['managed.yaml', 'byoc.yaml'].map((file) => stringify(inventoryExample(file)[0]));
  const incomplete = (orders ?? '').replace('region: westeurope', 'name: orders');
  narrator.command(`kubectl apply -n ${namespace} -f orders.yaml`);
  narrator.evidence(incomplete);
  await here(`apply -n ${namespace} -f -`, { input: incomplete });
  const missing = `get clusterinventory/orders -n ${namespace} -o jsonpath={.status.components[*].missing[*].path}`;
  await eventually('what is missing', async () => (await here(missing)).includes('/status/outputs/kubeconfig/version'));
  narrator.command(`kubectl get ${entries}`);
  narrator.evidence(await here(`get ${entries}`));

  narrator.step(
    'We set the region. The network is created first, and each other component follows once its inputs exist',
  );
  const region = JSON.stringify({ spec: { cluster: { region: 'westeurope' } } });
  narrator.command(`kubectl patch clusterinventory orders -n ${namespace} --type=merge -p '${region}'`);
  await here(`patch clusterinventory orders -n ${namespace} --type=merge -p ${region}`);
  await here(`wait clusterinventory/orders -n ${namespace} --for=condition=Ready --timeout=90s`);
  narrator.command(`kubectl get ${entries}`);
  narrator.evidence(await here(`get ${entries}`));
  narrator.command(`kubectl get ${runs}`);
  narrator.evidence(await here(`get ${runs}`));
  narrator.evidence(await here(`get virtualnetworks,shoots -n ${namespace}`));
  narrator.evidence(`the kubeconfig is in a Secret that the entry names: version ${await versionOf('orders')}`);

  narrator.step(
    'A user of the new cluster creates a ServiceInstance: the server runs one component, only for this entry',
  );
  await there('create namespace shop');
  narrator.command('kubectl apply -f service-instance.yaml   # in the new cluster');
  narrator.evidence(stringify(serviceInstance));
  await there('apply -f -', { input: stringify(serviceInstance) });
  await eventually('the proxy', async () => (await there(`get ${proxy} -o name`, { reject: false })).startsWith('dep'));
  narrator.evidence(await there(`get ${proxy}`));
  narrator.evidence('0/1, because the cluster has no nodes in this demo');
  narrator.evidence(`why it ran: ${await reasonOf(here, 'connectivity-proxy')}`);

  narrator.step('We force a new kubeconfig; the server runs every component that reads it again');
  const before = await versionOf('orders');
  const force = `${forceAnnotation('kubeconfig')}=now`;
  narrator.command(`kubectl annotate clusterinventory orders -n ${namespace} ${force}`);
  await here(`annotate clusterinventory orders -n ${namespace} ${force}`);
  await eventually('another version', async () => (await versionOf('orders')) !== before);
  await eventually('its reader', async () =>
    (await reasonOf(here, 'connectivity-proxy')).includes('kubeconfig/version'),
  );
  narrator.evidence(`version ${before} → ${await versionOf('orders')}`);
  narrator.evidence(`why connectivity-proxy ran: ${await reasonOf(here, 'connectivity-proxy')}`);

  narrator.step(
    'We delete the entry: the server calls all components at once, and each tears down once no other component needs its output',
  );
  narrator.command(`kubectl delete clusterinventory orders -n ${namespace}`);
  narrator.evidence(await here(`delete clusterinventory orders -n ${namespace} --timeout=60s`));
  narrator.evidence(await here(`get virtualnetworks,shoots,${runs}`));
  narrator.evidence(await there(`get ${proxy}`, { reject: false }));
  await there('wait --for=delete namespace/connectivity-proxy --timeout=60s', { reject: false });

  narrator.step(
    'We add an existing cluster by its kubeconfig: byoc publishes it, and the proxy component runs unchanged',
  );
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: 'legacy-admin' } };
  const stringData = { config: await adminKubeconfig(managed, 'legacy-admin') };
  narrator.command(`kubectl create secret generic legacy-admin -n ${namespace} --from-file=config=legacy.kubeconfig`);
  await here('apply -f -', { input: stringify({ ...secret, stringData }) });
  narrator.command(`kubectl apply -n ${namespace} -f examples/inventory/byoc.yaml`);
  narrator.evidence(legacy ?? '');
  await here(`apply -n ${namespace} -f -`, { input: legacy ?? '' });
  await here(`wait clusterinventory/legacy -n ${namespace} --for=condition=Ready --timeout=90s`);
  narrator.command(`kubectl get ${entries}`);
  narrator.evidence(await here(`get ${entries}`));
  narrator.evidence(await here(`get ${runs}`));
  narrator.evidence(await there(`get ${proxy}`));
  narrator.end('Done: no order was configured, and no component waited for an interval.');
}

const serviceInstance = {
  apiVersion: 'services.cloud.sap.com/v1',
  kind: 'ServiceInstance',
  metadata: { namespace: 'shop', name: 'backend' },
  spec: { serviceOfferingName: 'connectivity', servicePlanName: 'connectivity_proxy' },
};

type Run = (args: string, options?: { readonly input?: string; readonly reject?: boolean }) => Promise<string>;

function runner(plane: Plane): Run {
  return async (args, options = {}) => {
    const { stdout, stderr } = await plane.kubectl(args.split(' '), options);
    return stdout + stderr;
  };
}

/** The reasons of the last run of a component. */
async function reasonOf(here: Run, component: string): Promise<string> {
  const label = `inventory.drawbridge.dev/component=${component}`;
  return here(`get reconcileruns -n ${namespace} -l ${label} -o jsonpath={.items[*].spec.reasons[*]}`);
}

const eventually = (what: string, condition: () => Promise<boolean>): Promise<boolean> =>
  until(what, condition, { timeoutMs: 60_000, everyMs: 100 });

async function stayUp(narrator: Narrator, management: Plane, managed: Plane, server: InventoryServer): Promise<void> {
  narrator.title('Everything keeps running. Try it in another terminal (Ctrl-C here stops it):');
  const lines = [
    `cd ${process.cwd()}`,
    `export PATH=${management.binaries.kubectl.replace(/\/[^/]+$/, '')}:$PATH`,
    `export KUBECONFIG=${management.adminKubeconfig}   # ours`,
    `# or, for the other cluster: export KUBECONFIG=${managed.adminKubeconfig}`,
    `export CALLBACK_URL=${server.callbackUrl}   # for a component of your own`,
    `kubectl get clusterinventories,reconcileruns -n ${namespace}`,
    `node dist/client.cjs inventory status -n ${namespace}   # the client`,
    `node dist/client.cjs inventory why legacy -n ${namespace}`,
  ];
  narrator.evidence(lines.join('\n'));
  narrator.evidence(addressesOf(management, server));
  await until('the server to end', () => !server.running, { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 500 });
  throw new Error('the server ended');
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`\nfailed: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
