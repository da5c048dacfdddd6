import { Type } from 'typebox';
import { objectName, oneOf, opaqueObject } from '../schema/fields.ts';
import { ageColumn, defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindConditionList, readyColumn } from './condition.ts';
import { exportedResources, immutable } from './group-resource.ts';
import { apiServiceExportRequests } from './names.ts';
import { immutablePermissionClaims } from './permission-claim.ts';

export const apiServiceExportRequestKind = defineKind({
  resource: apiServiceExportRequests,
  description: 'An APIServiceExportRequest asks a provider for an APIServiceExport of the same name.',
  spec: Type.Object(
    {
      resources: exportedResources,
      permissionClaims: Type.Optional(immutablePermissionClaims),
      namespaces: Type.Optional(
        Type.Array(Type.Object({ name: objectName('The name of the namespace.') }), {
          description:
            'Consumer namespaces for which the provider creates APIServiceNamespaces. The konnector creates missing ones in the consumer, unless its flag --bindable-namespaces excludes them.',
          maxItems: 1024,
          ...immutable('namespaces'),
        }),
      ),
      parameters: Type.Optional(
        Type.Unsafe<Record<string, unknown>>({
          ...opaqueObject('Further parameters for the provider.'),
          ...immutable('parameters'),
        }),
      ),
      schemaUpdatePolicy: oneOf(['Never', 'Always'], {
        description: 'Not used; part of the format of kube-bind.',
        default: 'Never',
        ...immutable('schemaUpdatePolicy'),
      }),
    },
    { description: 'The requested export.' },
  ),
  status: Type.Object(
    {
      phase: oneOf(['Pending', 'Failed', 'Succeeded'], {
        description: 'The progress of the request.',
        default: 'Pending',
      }),
      terminalMessage: Type.Optional(
        Type.String({
          description: 'Why the request failed. The provider does not retry it.',
          maxLength: 32_768,
        }),
      ),
      conditions: Type.Optional(bindConditionList),
    },
    { description: 'The state of this request.', default: {} },
  ),
  printerColumns: [readyColumn, ageColumn],
  categories: ['kube-bindings'],
});

export type ApiServiceExportRequest = ObjectOf<typeof apiServiceExportRequestKind>;
