import { shoots } from '../../../examples/inventory/components/cluster.ts';
import { serviceInstances } from '../../../examples/inventory/components/connectivity-proxy.ts';
import { virtualNetworks } from '../../../examples/inventory/components/network.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** CRD of another project's kind, with arbitrary fields. */
function crdOf({ group, version, plural, kind }: Resource): KubeObject {
  return {
    apiVersion: apiVersionOf(customResourceDefinitions),
    kind: customResourceDefinitions.kind,
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}

/** CRDs of the cloud operators in the management cluster. */
export const cloudCrds: readonly KubeObject[] = [virtualNetworks, shoots].map(crdOf);
/** CRDs of managed clusters. */
export const serviceCrds: readonly KubeObject[] = [crdOf(serviceInstances)];
