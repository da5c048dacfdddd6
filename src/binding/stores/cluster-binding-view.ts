import type { ClusterBinding } from '../../api/binding/cluster-binding.ts';
import { readBindConditions } from '../../api/binding/condition.ts';
import { own } from '../../kit/json-value.ts';
import { text } from './common-view.ts';
import type { View } from './project.ts';
import type { ClusterBindingView } from './views.ts';

export const clusterBindingView: View<ClusterBinding['spec'], ClusterBindingView> = (
  common,
  spec,
  { metadata, status },
) => {
  const consumer = own(status, 'consumerSecretRef');
  const name = text(consumer, 'name');
  const namespace = text(consumer, 'namespace');
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    secretRef: spec.kubeconfigSecretRef,
    providerPrettyName: spec.providerPrettyName,
    lastHeartbeatTime: text(status, 'lastHeartbeatTime'),
    heartbeatInterval: text(status, 'heartbeatInterval'),
    konnectorVersion: text(status, 'konnectorVersion'),
    consumerSecretRef: name && namespace ? { namespace, name } : undefined,
    conditions: readBindConditions(status),
  };
};
