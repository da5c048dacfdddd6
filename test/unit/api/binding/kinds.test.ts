import assert from 'node:assert/strict';
import fc from 'fast-check';
import { apiServiceBindingKind } from '../../../../src/api/binding/api-service-binding.ts';
import { apiServiceBindingBundleKind } from '../../../../src/api/binding/api-service-binding-bundle.ts';
import { apiServiceExportKind } from '../../../../src/api/binding/api-service-export.ts';
import { apiServiceExportRequestKind } from '../../../../src/api/binding/api-service-export-request.ts';
import { apiServiceNamespaceKind } from '../../../../src/api/binding/api-service-namespace.ts';
import { boundSchemaKind } from '../../../../src/api/binding/bound-schema.ts';
import { clusterBindingKind } from '../../../../src/api/binding/cluster-binding.ts';
import { boundSchemaName } from '../../../../src/api/binding/group-resource.ts';
import { consumerKinds, providerKinds } from '../../../../src/api/binding/kinds.ts';
import { readPermissionClaims } from '../../../../src/api/binding/permission-claim.ts';
import type { KubeObject } from '../../../../src/api/object.ts';
import { customResourceDefinition } from '../../../../src/api/schema/crd.ts';
import { type Kind, readObject } from '../../../../src/api/schema/kind.ts';
import type { Read } from '../../../../src/api/schema/read.ts';
import type { StructuralSchema } from '../../../../src/api/schema/structural-schema.ts';
import * as objects from '../../../support/binding/objects.ts';
import { celRefusals } from '../../../support/cel-rules.ts';

const kinds: readonly [Kind, (fields?: Readonly<Record<string, unknown>>) => KubeObject][] = [
  [apiServiceBindingKind, objects.bindingManifest],
  [apiServiceBindingBundleKind, objects.bundleManifest],
  [apiServiceExportKind, objects.exportManifest],
  [apiServiceExportRequestKind, objects.exportRequestManifest],
  [apiServiceNamespaceKind, objects.serviceNamespaceManifest],
  [boundSchemaKind, objects.boundSchemaManifest],
  [clusterBindingKind, objects.clusterBindingManifest],
];

function specOf(result: Read<{ spec: unknown }>): unknown {
  assert.ok(result.ok, JSON.stringify(result));
  return result.value.spec;
}

describe('the readers of the kinds of kube-bind', () => {
  for (const [definition, manifest] of kinds) {
    const { kind } = definition.resource;
    const read = (object: unknown): Read<{ spec: unknown; status?: unknown }> => readObject(definition, object);
    describe(kind, () => {
      it('reads its own output', () => {
        const { spec } = manifest();
        const expected =
          kind === 'APIServiceExportRequest' ? { ...(spec as object), schemaUpdatePolicy: 'Never' } : spec;
        assert.deepEqual(specOf(read(manifest())), expected);
      });

      it('omits fields of a later release', () => {
        const { spec } = manifest();
        const later = manifest({ spec: { ...(spec as object), later: { a: [1] } }, status: { later: 1 }, later: true });
        assert.deepEqual(specOf(read(later)), specOf(read(manifest())));
      });

      it('never throws, for any value in any field', () => {
        const fields = Object.keys(manifest().spec as object);
        fc.assert(
          fc.property(fc.anything(), fc.constantFrom('', ...fields), (value, field) => {
            read(value);
            read(manifest({ spec: value }));
            read(manifest({ status: value }));
            read(manifest({ status: { conditions: value } }));
            if (field !== '') read(manifest({ spec: { ...(manifest().spec as object), [field]: value } }));
          }),
          { seed: 3, numRuns: 200 },
        );
      });
    });
  }

  it('read a missing group as the core group', () => {
    const spec = { ...(objects.exportManifest().spec as object), resources: [{ resource: 'secrets' }] };
    assert.deepEqual(
      (specOf(readObject(apiServiceExportKind, objects.exportManifest({ spec }))) as { resources: unknown }).resources,
      [{ group: '', resource: 'secrets' }],
    );
  });

  it('reject an export in the form of v1alpha1', () => {
    const spec = {
      group: 'kitchen.example',
      scope: 'Namespaced',
      versions: [{ name: 'v1' }],
      informerScope: 'Namespaced',
    };
    assert.ok(!readObject(apiServiceExportKind, objects.exportManifest({ spec })).ok);
  });

  it('read a namespace without a spec, and no schema without one', () => {
    const { spec: _, ...bare } = objects.serviceNamespaceManifest();
    assert.deepEqual(specOf(readObject(apiServiceNamespaceKind, bare)), {});
    assert.ok(!readObject(boundSchemaKind, { ...objects.boundSchemaManifest(), spec: undefined }).ok);
  });

  it('omit invalid claims', () => {
    const broken = { ...objects.secretsClaim, resource: 'Not A Resource' };
    assert.deepEqual(readPermissionClaims([null, broken, objects.secretsClaim, {}]).length, 1);
    assert.deepEqual(readPermissionClaims('x'), []);
  });
});

describe('the name of a BoundSchema', () => {
  it('is the resource and its group, with core for the empty group', () => {
    assert.equal(boundSchemaName({ group: 'kitchen.example', resource: 'kettles' }), 'kettles.kitchen.example');
    assert.equal(boundSchemaName({ group: '', resource: 'secrets' }), 'secrets.core');
  });
});

interface Crd {
  spec: {
    names: { shortNames?: string[]; categories?: string[] };
    scope: string;
    conversion?: unknown;
    versions: {
      name: string;
      served: boolean;
      storage: boolean;
      subresources: unknown;
      schema: { openAPIV3Schema: StructuralSchema };
      additionalPrinterColumns: { name: string }[];
    }[];
  };
}

const crdOf = (kind: Kind): Crd['spec'] => (customResourceDefinition(kind) as unknown as Crd).spec;

describe('the CRDs of kube-bind', () => {
  const all = [...consumerKinds, ...providerKinds];
  const rows = all.map((kind) => {
    const { names, scope, versions } = crdOf(kind);
    const shown = versions.map(({ name, served, storage }) => `${name}${served ? '' : '-'}${storage ? '*' : ''}`);
    return [kind.resource.kind, scope, names.shortNames?.join() ?? '', names.categories?.join(), shown.join()].join(
      ' ',
    );
  });

  it('have the scopes, short names, categories, and versions of kube-bind', () => {
    assert.deepEqual(rows, [
      'APIServiceBinding Cluster sb kube-bindings v1alpha1,v1alpha2*',
      'APIServiceBindingBundle Cluster sbb kube-bindings v1alpha2*',
      'APIServiceExport Namespaced  kube-bindings v1alpha2*',
      'APIServiceExportRequest Namespaced  kube-bindings v1alpha2*',
      'APIServiceNamespace Namespaced  kube-bindings v1alpha2*',
      'BoundSchema Namespaced bs kube-bindings v1alpha2*',
      'ClusterBinding Namespaced  kube-bindings v1alpha2*',
    ]);
  });

  it('have the columns of kube-bind', () => {
    const columns = all.map((kind) =>
      crdOf(kind)
        .versions[0]?.additionalPrinterColumns.map(({ name }) => name)
        .join(', '),
    );
    assert.deepEqual(columns, [
      'Provider, Resources, Ready, Message, Age',
      'Provider, Resources, Ready, Message, Age',
      'Established, Age',
      'Ready, Age',
      'Namespace, Age',
      'Ready, Age',
      'Konnector Version, Last Heartbeat, Ready, Age',
    ]);
  });

  it('have a status in every version and convert nothing', () => {
    for (const kind of all) {
      const { versions, conversion } = crdOf(kind);
      for (const { subresources } of versions) assert.deepEqual(subresources, { status: {} });
      assert.deepEqual(conversion, versions.length > 1 ? { strategy: 'None' } : undefined);
    }
  });

  it('serve only the fields of v1alpha1 in v1alpha1', () => {
    const [old] = crdOf(consumerKinds[0] as Kind).versions;
    const properties = old?.schema.openAPIV3Schema.properties;
    assert.deepEqual(Object.keys(properties?.['status']?.properties ?? {}), ['providerPrettyName', 'conditions']);
    const key = properties?.['spec']?.properties?.['kubeconfigSecretRef']?.properties?.['key'];
    assert.deepEqual(key?.enum, ['kubeconfig']);
  });
});

describe('the rules of the CRDs of kube-bind', () => {
  const rules = (kind: Kind, value: unknown, old?: unknown): string[] => {
    const root = crdOf(kind).versions.at(-1)?.schema.openAPIV3Schema ?? {};
    return celRefusals(root, value, old);
  };

  for (const [title, kind, before, after] of [
    [
      'the Secret of a binding',
      consumerKinds[0] as Kind,
      objects.bindingManifest(),
      objects.bindingManifest({ spec: { kubeconfigSecretRef: { ...objects.kubeconfigSecretRef, name: 'other' } } }),
    ],
    [
      'the Secret of a bundle',
      consumerKinds[1] as Kind,
      objects.bundleManifest(),
      objects.bundleManifest({ spec: { kubeconfigSecretRef: { ...objects.kubeconfigSecretRef, key: 'other' } } }),
    ],
    [
      'the isolation of an export',
      apiServiceExportKind,
      objects.exportManifest(),
      objects.exportManifest({ spec: { ...(objects.exportManifest().spec as object), isolation: 'None' } }),
    ],
  ] as const) {
    it(`fix ${title}`, () => {
      assert.deepEqual(rules(kind, before, before), []);
      assert.equal(rules(kind, after, before).length, 1);
    });
  }

  it('allow one ClusterBinding only', () => {
    const other = { ...objects.clusterBindingManifest(), metadata: { name: 'other' } };
    assert.deepEqual(rules(clusterBindingKind, objects.clusterBindingManifest()), []);
    assert.deepEqual(rules(clusterBindingKind, other), ['the name must be cluster']);
  });

  it('require a webhook exactly for conversion by webhook', () => {
    const of = (conversion: object): KubeObject =>
      objects.boundSchemaManifest({ spec: { ...(objects.boundSchemaManifest().spec as object), conversion } });
    assert.deepEqual(rules(boundSchemaKind, of({ strategy: 'None' })), []);
    assert.deepEqual(rules(boundSchemaKind, of({ strategy: 'Webhook', webhook: {} })), []);
    assert.equal(rules(boundSchemaKind, of({ strategy: 'Webhook' })).length, 1);
    assert.equal(rules(boundSchemaKind, of({ strategy: 'None', webhook: {} })).length, 1);
  });
});
