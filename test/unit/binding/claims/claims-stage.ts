import type { ExportView } from '../../../../src/binding/stores/views.ts';

/** An export of kettles, as a store has it. */
export const exportOf = (fields: Partial<ExportView> = {}): ExportView => ({
  key: 'kb-acme/kettles',
  uid: 'uid-of-export',
  resourceVersion: '1',
  name: 'kettles',
  namespace: 'kb-acme',
  generation: 1,
  deleting: false,
  finalizers: [],
  labels: {},
  annotations: {},
  ownerReferences: [],
  resources: [{ group: 'kitchen.example', resource: 'kettles', versions: ['v1'] }],
  permissionClaims: [],
  informerScope: 'Namespaced',
  isolation: 'Prefixed',
  conditions: [],
  ...fields,
});
