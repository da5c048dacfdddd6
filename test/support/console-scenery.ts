import { stringify } from 'yaml';
import type { PlaneClient } from '../../sandbox/plane-client.ts';

const group = 'inventory.drawbridge.dev';
const inventoryVersion = `${group}/v1alpha1`;
const since = '2026-01-01T10:00:00Z';

const component = (name: string, reads: readonly string[]) => ({
  apiVersion: inventoryVersion,
  kind: 'ComponentReconciler',
  metadata: { name },
  spec: { endpoint: { url: 'http://127.0.0.1:1' }, reads },
});

const outputs = (...names: readonly string[]): string[] => names.map((name) => `/status/outputs/${name}`);

/** Components of which each reads what others write. */
const components = [
  component('network', ['/spec/cluster/region']),
  component('cluster', ['/spec/cluster/region', ...outputs('network')]),
  component('kubeconfig', outputs('cluster')),
  component('dns', outputs('network')),
  component('proxy', outputs('kubeconfig', 'dns')),
];

const states = { network: 'Done', cluster: 'Done', kubeconfig: 'Retrying', dns: 'Done', proxy: 'NotReady' };

const binding = {
  apiVersion: 'kube-bind.io/v1alpha2',
  kind: 'APIServiceBinding',
  metadata: { name: 'databases' },
  status: {
    providerPrettyName: 'Databases of the platform team',
    conditions: [
      { type: 'Ready', status: 'False', message: 'the heartbeat is late', lastTransitionTime: since },
      { type: 'Heartbeating', status: 'False', message: 'the last heartbeat is 12 min old', lastTransitionTime: since },
      { type: 'SchemaInSync', status: 'True', message: '', lastTransitionTime: since },
    ],
  },
};

/** Any object. The konnector brings the real one. */
const bindingCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'apiservicebindings.kube-bind.io' },
  spec: {
    group: 'kube-bind.io',
    scope: 'Cluster',
    names: { plural: 'apiservicebindings', singular: 'apiservicebinding', kind: 'APIServiceBinding' },
    versions: [
      {
        name: 'v1alpha2',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

const crds = ['-f', 'charts/drawbridge/files/inventory-crds'];

/** Puts what the pages Inventory and Bindings show into a cluster in which neither feature runs. */
export async function setScenery(plane: PlaneClient, namespace: string): Promise<void> {
  const apply = (...objects: readonly object[]) =>
    plane.kubectl(['apply', '-n', namespace, '-f', '-'], { input: objects.map((one) => stringify(one)).join('---\n') });
  await plane.kubectl(['apply', ...crds]);
  await apply(bindingCrd);
  await plane.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  const entry = { apiVersion: inventoryVersion, kind: 'ClusterInventory', metadata: { name: 'orders' } };
  await apply(binding, ...components, { ...entry, spec: { mode: 'managed', cluster: { region: 'westeurope' } } });
  const status = {
    components: Object.entries(states).map(([name, state]) => ({ name, state, since })),
    conditions: [
      { type: 'Ready', status: 'False', reason: 'Waiting', message: 'proxy is not ready', lastTransitionTime: since },
    ],
  };
  const patch = JSON.stringify({ status });
  await plane.kubectl([
    'patch',
    '-n',
    namespace,
    'clusterinventory/orders',
    '--subresource=status',
    '--type=merge',
    '-p',
    patch,
  ]);
}

export async function removeScenery(plane: PlaneClient): Promise<void> {
  await plane.kubectl(['delete', '--ignore-not-found', ...crds]);
  await plane.kubectl(['delete', '--ignore-not-found', 'crd', bindingCrd.metadata.name]);
}
