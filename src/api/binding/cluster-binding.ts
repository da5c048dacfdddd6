import { Type } from 'typebox';
import { objectName, opaqueObject, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindConditionList, readyColumn } from './condition.ts';
import { clusterBindings } from './names.ts';
import { localSecretKeyRef } from './secret-key-ref.ts';

export const clusterBindingKind = defineKind({
  resource: clusterBindings,
  description: 'A ClusterBinding represents the consumer cluster of its namespace. Its name is always cluster.',
  spec: Type.Object(
    {
      kubeconfigSecretRef: localSecretKeyRef,
      providerPrettyName: Type.String({
        description: 'The display name of the provider.',
        minLength: 1,
        maxLength: 4096,
      }),
      serviceProviderSpec: Type.Optional(opaqueObject('Further data of the provider.')),
    },
    { description: 'Set by the provider.' },
  ),
  status: Type.Object(
    {
      lastHeartbeatTime: Type.Optional(time('The last heartbeat of the konnector.')),
      heartbeatInterval: Type.Optional(
        Type.String({ description: 'The longest time between heartbeats, such as 5m0s.', maxLength: 64 }),
      ),
      konnectorVersion: Type.Optional(Type.String({ description: 'The version of the konnector.', maxLength: 1024 })),
      consumerSecretRef: Type.Optional(
        Type.Object(
          {
            name: objectName('The name of the Secret.'),
            namespace: Type.String({ description: 'The namespace of the Secret.', maxLength: 253 }),
          },
          { description: 'The Secret of the consumer that holds the kubeconfig.' },
        ),
      ),
      conditions: Type.Optional(bindConditionList),
    },
    { description: 'Set by the konnector.' },
  ),
  rules: [{ rule: 'self.metadata.name == "cluster"', message: 'the name must be cluster' }],
  printerColumns: [
    column('Konnector Version', '.status.konnectorVersion', 'The version of the konnector in the consumer.'),
    column('Last Heartbeat', '.status.lastHeartbeatTime', 'The last heartbeat of the konnector.', {
      type: 'date',
    }),
    readyColumn,
    ageColumn,
  ],
  categories: ['kube-bindings'],
});

export type ClusterBinding = ObjectOf<typeof clusterBindingKind>;
