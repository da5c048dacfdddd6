import type { BoundSchema } from '../../api/binding/bound-schema.ts';
import { readBindConditions } from '../../api/binding/condition.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { strings } from './common-view.ts';
import type { View } from './project.ts';
import type { BoundSchemaView, BoundVersion } from './views.ts';

type Spec = BoundSchema['spec'];

export const boundSchemaView: View<Spec, BoundSchemaView> = (common, spec, { metadata, status }) => ({
  ...common,
  namespace: metadata.namespace ?? '',
  informerScope: spec.informerScope,
  group: spec.group,
  names: spec.names,
  scope: spec.scope,
  versions: spec.versions.map(versionOf),
  conversion: spec.conversion,
  conditions: readBindConditions(status),
  acceptedNames: own(status, 'acceptedNames'),
  storedVersions: strings(own(status, 'storedVersions')),
});

function versionOf({
  schema,
  subresources,
  additionalPrinterColumns,
  ...version
}: Spec['versions'][number]): BoundVersion {
  const wrapped = own(schema, 'openAPIV3Schema');
  return {
    ...version,
    schema: isRecord(wrapped) ? wrapped : schema,
    subresources: subresources ?? {},
    additionalPrinterColumns: additionalPrinterColumns ?? [],
  };
}
