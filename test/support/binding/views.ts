import type { BindingView } from '../../../src/binding/stores/consumer-stores.ts';
import type { BoundSchemaView, BoundVersion, ExportView } from '../../../src/binding/stores/provider-stores.ts';

const commonOf = (name: string) => ({
  key: `kb-acme/${name}`,
  uid: `uid-of-${name}`,
  resourceVersion: '1',
  namespace: 'kb-acme',
  name,
  generation: 1,
  deleting: false,
  finalizers: [],
  labels: {},
  annotations: {},
  ownerReferences: [],
});

/** An export of kettles, as a store returns it. */
export const exportOf = (fields: Partial<ExportView> = {}): ExportView => ({
  ...commonOf('kettles'),
  resources: [{ group: 'kitchen.example', resource: 'kettles', versions: ['v1'] }],
  permissionClaims: [],
  informerScope: 'Namespaced',
  isolation: 'Prefixed',
  conditions: [],
  ...fields,
});

export const versionOf = (fields: Partial<BoundVersion> = {}): BoundVersion => ({
  name: 'v1',
  served: true,
  storage: true,
  schema: { type: 'object', properties: { spec: { type: 'object' } } },
  subresources: { status: {} },
  additionalPrinterColumns: [],
  ...fields,
});

/** The BoundSchema of kettles, as a store returns it. */
export const schemaOf = (fields: Partial<BoundSchemaView> = {}): BoundSchemaView => ({
  ...commonOf('kettles.kitchen.example'),
  informerScope: 'Namespaced',
  group: 'kitchen.example',
  names: { plural: 'kettles', kind: 'Kettle' },
  scope: 'Namespaced',
  versions: [versionOf()],
  conversion: undefined,
  conditions: [],
  acceptedNames: undefined,
  storedVersions: [],
  ...fields,
});

/** A binding of kettles, as a store returns it. */
export const bindingOf = (fields: Partial<BindingView> = {}): BindingView => ({
  ...commonOf('kettles'),
  key: 'kettles',
  secretRef: { namespace: 'kube-bind', name: 'kubeconfig-acme', key: 'kubeconfig' },
  conditions: [],
  providerPrettyName: undefined,
  boundSchemas: [],
  permissionClaims: [],
  ...fields,
});
