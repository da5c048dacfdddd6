import { Type } from 'typebox';
import { objectName, opaqueObject, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { bindConditionList, readyColumn } from './condition.ts';
import { clusterBindings } from './names.ts';
import { localSecretKeyRef } from './secret-key-ref.ts';

export const clusterBindingKind = defineKind({
  resource: clusterBindings,
  description:
    'A ClusterBinding stands for the consumer cluster that the namespace is for. There is one, called cluster.',
  spec: Type.Object(
    {
      kubeconfigSecretRef: localSecretKeyRef,
      providerPrettyName: Type.String({
        description: 'What the provider calls itself.',
        minLength: 1,
        maxLength: 4096,
      }),
      serviceProviderSpec: Type.Optional(opaqueObject('Whatever else the provider wants to keep here.')),
    },
    { description: 'What the provider says of itself.' },
  ),
  status: Type.Object(
    {
      lastHeartbeatTime: Type.Optional(time('When the konnector was last heard of.')),
      heartbeatInterval: Type.Optional(
        Type.String({ description: 'The longest time between two heartbeats, such as 5m0s.', maxLength: 64 }),
      ),
      konnectorVersion: Type.Optional(Type.String({ description: 'The version of the konnector.', maxLength: 1024 })),
      consumerSecretRef: Type.Optional(
        Type.Object(
          {
            name: objectName('The name of the Secret.'),
            namespace: Type.String({ description: 'Its namespace.', maxLength: 253 }),
          },
          { description: 'The Secret of the consumer that the kubeconfig is kept in.' },
        ),
      ),
      conditions: Type.Optional(bindConditionList),
    },
    { description: 'What the konnector says of itself.' },
  ),
  rules: [{ rule: 'self.metadata.name == "cluster"', message: 'the name must be cluster' }],
  printerColumns: [
    column('Konnector Version', '.status.konnectorVersion', 'The version of the konnector in the consumer.'),
    column('Last Heartbeat', '.status.lastHeartbeatTime', 'When the konnector was last heard of.', { type: 'date' }),
    readyColumn,
    ageColumn,
  ],
  categories: ['kube-bindings'],
});

export type ClusterBinding = ObjectOf<typeof clusterBindingKind>;

export function readClusterBinding(object: unknown): Read<ClusterBinding> {
  return readObject(clusterBindingKind, object);
}
