import assert from 'node:assert/strict';
import { boundCrd } from '../../../../src/binding/service-binding/bound-crd.ts';
import type { BoundSchemaView, ExportView } from '../../../../src/binding/stores/provider-stores.ts';
import { crdSpec } from '../../../support/binding/memory-stage.ts';
import { exportOf, schemaOf, versionOf } from '../../../support/binding/views.ts';

const asking = (versions: readonly string[]): ExportView =>
  exportOf({ resources: [{ group: 'kitchen.example', resource: 'kettles', versions: [...versions] }] });
const webhook = { strategy: 'Webhook', webhook: { clientConfig: { url: 'https://acme.example' } } };

const ofCrd = { plural: 'kettles', kind: 'Kettle', singular: 'pot', listKind: 'Pots' };
const allNames = { ...ofCrd, shortNames: ['k'], categories: ['all'] };
const rich = {
  deprecated: true,
  deprecationWarning: 'use v2',
  subresources: { scale: { specReplicasPath: '.spec.n' } },
  additionalPrinterColumns: [{ name: 'Hot', type: 'boolean', jsonPath: '.status.hot' }],
};
const two = { conversion: webhook, versions: [versionOf({ storage: false }), versionOf({ name: 'v2' })] };

const [v1] = crdSpec.versions;
const bare = { name: 'v1', served: true, storage: true, schema: v1?.schema };

describe('the CustomResourceDefinition of a BoundSchema', () => {
  const good: [what: string, fields: Partial<BoundSchemaView>, spec: object, only?: string][] = [
    ['has the default names of the API server', {}, crdSpec],
    [
      'has no empty lists, which the API server drops',
      { names: { plural: 'kettles', kind: 'Kettle', shortNames: [], categories: [] } },
      crdSpec,
    ],
    [
      'has all fields of the schema',
      { names: allNames, scope: 'Cluster', versions: [versionOf(rich)] },
      { ...crdSpec, names: allNames, scope: 'Cluster', versions: [{ ...v1, ...rich }] },
    ],
    [
      'has no subresources if there are none',
      { versions: [versionOf({ subresources: {} })] },
      { ...crdSpec, versions: [bare] },
    ],
    ['needs no webhook for a single version', { conversion: webhook }, crdSpec],
    [
      'serves and stores one version if conversion needs a webhook',
      two,
      {
        ...crdSpec,
        versions: [
          { ...v1, served: false, storage: false },
          { ...v1, name: 'v2' },
        ],
      },
      'v2',
    ],
    [
      'serves a served version, even if another is stored',
      { conversion: webhook, versions: [versionOf({ storage: false }), versionOf({ name: 'v2', served: false })] },
      { ...crdSpec, versions: [v1, { ...v1, name: 'v2', served: false, storage: false }] },
      'v1',
    ],
  ];
  for (const [what, fields, spec, only] of good) {
    it(what, () => {
      const result = boundCrd(schemaOf(fields), asking([]));
      assert.ok('spec' in result);
      assert.deepEqual(JSON.parse(JSON.stringify(result.spec)), spec);
      assert.equal(result.onlyVersion, only);
    });
  }

  const bad: [what: string, fields: Partial<BoundSchemaView>, says: RegExp][] = [
    ['the core group', { group: '', name: 'kettles.core' }, /kettles\.core is in the core group/],
    ['another group than its name', { group: 'apps' }, /kettles\.kitchen\.example describes kettles\.apps/],
    [
      'a default with an inexact number',
      { versions: [versionOf({ schema: { properties: { n: { default: 2 ** 53, maximum: 2 ** 63 } } } })] },
      /has an integer between 2\^53 and 2\^63 at spec\.versions\[0\]\.schema\.properties\.n\.default/,
    ],
    ['another plural', { names: { plural: 'pots', kind: 'Pot' } }, /describes pots\.kitchen\.example/],
    ['a schema that is no object', { versions: [versionOf({ schema: 'string' })] }, /no schema for version v1/],
  ];
  for (const [what, fields, says] of bad) {
    it(`does not exist for ${what}`, () => {
      const result = boundCrd(schemaOf(fields), asking([]));
      assert.ok('problem' in result);
      assert.match(result.problem, says);
    });
  }

  it('is built once for each view', () => {
    const view = schemaOf();
    assert.equal(boundCrd(view, asking([])), boundCrd(view, asking(['v1'])));
  });

  it('serves the version that the export names if conversion needs a webhook', () => {
    const view = schemaOf(two);
    for (const [asked, only] of [
      [[], 'v2'],
      [['v1'], 'v1'],
      [['v1', 'v2'], 'v2'],
    ] as const) {
      const result = boundCrd(view, asking(asked));
      assert.equal('spec' in result && result.onlyVersion, only);
    }
  });
});
