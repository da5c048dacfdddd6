import { bindGroup, bindVersion, sourceSpecHashAnnotation } from '../../src/api/binding/names.ts';
import type { KubeObject } from '../../src/api/object.ts';
import type { InformerScope, IsolationName } from '../../src/binding/stores/provider-stores.ts';
import { canonicalJson, sha256Hex } from '../../src/kit/canonical-json.ts';

interface CrdSpec {
  readonly group: string;
  readonly scope: 'Cluster' | 'Namespaced';
  readonly names: object;
  readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: unknown } }[];
}

export interface BoundSchemaOptions {
  readonly namespace: string;
  readonly isolation: IsolationName;
  readonly informerScope: InformerScope;
}

/** The BoundSchema that the backend creates from a CRD. With isolation Namespaced, namespaced resources are cluster-scoped for consumers. */
export function boundSchemaOf(
  crd: KubeObject,
  { namespace, isolation, informerScope }: BoundSchemaOptions,
): KubeObject {
  const { group, scope, names, versions } = crd.spec as CrdSpec;
  const spec = {
    informerScope,
    group,
    names,
    scope: isolation === 'Namespaced' && scope === 'Namespaced' ? 'Cluster' : scope,
    versions: versions.map((version) => ({ ...version, schema: version.schema.openAPIV3Schema })),
  };
  return {
    apiVersion: `${bindGroup}/${bindVersion}`,
    kind: 'BoundSchema',
    metadata: {
      name: crd.metadata.name,
      namespace,
      annotations: { [sourceSpecHashAnnotation]: sha256Hex(canonicalJson(spec)) },
    },
    spec,
  };
}
