import type { ApiServiceExport } from '../../api/binding/api-service-export.ts';
import type { ApiServiceExportRequest } from '../../api/binding/api-service-export-request.ts';
import { readBindConditions } from '../../api/binding/condition.ts';
import { own } from '../../kit/json-value.ts';
import { text } from './common-view.ts';
import type { View } from './project.ts';
import type { ExportRequestView, ExportView } from './views.ts';

export const exportView: View<ApiServiceExport['spec'], ExportView> = (common, spec, { metadata, status }) => ({
  ...common,
  namespace: metadata.namespace ?? '',
  resources: spec.resources.map(({ group, resource, versions = [] }) => ({ group, resource, versions })),
  permissionClaims: spec.permissionClaims ?? [],
  informerScope: spec.informerScope,
  isolation: spec.isolation,
  conditions: readBindConditions(status),
});

/** Of an export that cannot be read. */
export const blankExport: ApiServiceExport['spec'] = { resources: [], informerScope: 'Namespaced', isolation: 'None' };

export const exportRequestView: View<ApiServiceExportRequest['spec'], ExportRequestView> = (
  common,
  _spec,
  { metadata, status },
) => {
  const phase = own(status, 'phase');
  return {
    ...common,
    namespace: metadata.namespace ?? '',
    phase: phase === 'Failed' || phase === 'Succeeded' ? phase : 'Pending',
    terminalMessage: text(status, 'terminalMessage') ?? '',
  };
};
