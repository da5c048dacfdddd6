import { Type } from 'typebox';
import { oneOf } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindConditionList } from './condition.ts';
import { exportedResources, immutable } from './group-resource.ts';
import { apiServiceExports } from './names.ts';
import { immutablePermissionClaims } from './permission-claim.ts';

const isolation = (field: string, description: string) =>
  oneOf(['Prefixed', 'Namespaced', 'None'], {
    description,
    ...immutable(field),
  });

export const apiServiceExportKind = defineKind({
  resource: apiServiceExports,
  description: 'An APIServiceExport offers resources of this cluster to the consumer whose namespace it is in.',
  spec: Type.Object(
    {
      resources: exportedResources,
      permissionClaims: Type.Optional(immutablePermissionClaims),
      informerScope: oneOf(['Cluster', 'Namespaced'], {
        description: 'Not used: that of the BoundSchemas counts.',
        ...immutable('informerScope'),
      }),
      isolation: isolation(
        'isolation',
        'How the provider separates copies of cluster-scoped objects. Prefixed: their names begin with the namespace of this export. Namespaced: they are in that namespace. None: they keep their names.',
      ),
      clusterScopedIsolation: Type.Optional(
        isolation('clusterScopedIsolation', 'Deprecated and ignored; use isolation.'),
      ),
    },
    { description: 'The exported resources and their isolation.' },
  ),
  status: Type.Object({ conditions: Type.Optional(bindConditionList) }, { description: 'The state of this export.' }),
  printerColumns: [
    column(
      'Established',
      '.status.conditions[?(@.type=="Established")].status',
      'Whether the resources are installed in the consumer.',
      { priority: 5 },
    ),
    ageColumn,
  ],
  categories: ['kube-bindings'],
});

export type ApiServiceExport = ObjectOf<typeof apiServiceExportKind>;
