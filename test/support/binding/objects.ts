import {
  apiServiceBindingBundles,
  apiServiceBindings,
  apiServiceExportRequests,
  apiServiceExports,
  apiServiceNamespaces,
  bindGroup,
  bindVersion,
  boundSchemas,
  clusterBindings,
} from '../../../src/api/binding/names.ts';
import type { KubeObject, Resource } from '../../../src/api/object.ts';

type Fields = Readonly<Record<string, unknown>>;

/** One object of every kind of kube-bind, as from an API server; parameters replace `spec` and other fields. */
const of =
  (resource: Resource, name: string, spec: Fields) =>
  (fields: Fields = {}): KubeObject => ({
    apiVersion: `${bindGroup}/${bindVersion}`,
    kind: resource.kind,
    metadata: {
      name,
      ...(resource.namespaced ? { namespace: 'kb-acme' } : {}),
      uid: `uid-of-${name}`,
      resourceVersion: '7',
      generation: 1,
    },
    spec,
    ...fields,
  });

export const kubeconfigSecretRef = { namespace: 'kube-bind', name: 'kubeconfig-acme', key: 'kubeconfig' };

export const secretsClaim = {
  group: '',
  resource: 'secrets',
  selector: {
    labelSelector: { matchLabels: { app: 'kettle' } },
    references: [
      {
        group: 'kitchen.example',
        resource: 'kettles',
        jsonPath: { name: 'spec.secretRefs.#.name', namespace: 'spec.secretRefs.#.namespace' },
      },
    ],
  },
};

export const bindingManifest = of(apiServiceBindings, 'kettles', { kubeconfigSecretRef });
export const bundleManifest = of(apiServiceBindingBundles, 'acme', { kubeconfigSecretRef });
export const exportManifest = of(apiServiceExports, 'kettles', {
  informerScope: 'Namespaced',
  isolation: 'Prefixed',
  resources: [{ group: 'kitchen.example', resource: 'kettles', versions: ['v1'] }],
  permissionClaims: [secretsClaim],
});
export const exportRequestManifest = of(apiServiceExportRequests, 'kettles', {
  resources: [{ group: 'kitchen.example', resource: 'kettles', versions: ['v1'] }],
});
export const serviceNamespaceManifest = of(apiServiceNamespaces, 'team-a', {});
export const boundSchemaManifest = of(boundSchemas, 'kettles.kitchen.example', {
  group: 'kitchen.example',
  scope: 'Namespaced',
  informerScope: 'Namespaced',
  names: { plural: 'kettles', singular: 'kettle', kind: 'Kettle', listKind: 'KettleList' },
  versions: [
    {
      name: 'v1',
      served: true,
      storage: true,
      subresources: { status: {} },
      schema: { type: 'object', properties: { spec: { type: 'object' } } },
    },
  ],
});
export const clusterBindingManifest = of(clusterBindings, 'cluster', {
  providerPrettyName: 'Acme',
  kubeconfigSecretRef: { name: 'kubeconfig', key: 'kubeconfig' },
});
