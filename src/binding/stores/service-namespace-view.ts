import type { ApiServiceNamespace } from '../../api/binding/api-service-namespace.ts';
import { ownerLabel } from '../../api/binding/names.ts';
import { text } from './common-view.ts';
import type { View } from './project.ts';
import type { ServiceNamespaceView } from './views.ts';

export const serviceNamespaceView: View<ApiServiceNamespace['spec'], ServiceNamespaceView> = (
  common,
  _spec,
  { metadata, status },
) => {
  const owner = common.labels[ownerLabel];
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    serviceNamespace: text(status, 'namespace'),
    owner: owner === 'provider' || owner === 'consumer' ? owner : undefined,
  };
};
