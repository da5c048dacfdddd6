import assert from 'node:assert/strict';
import {
  hasRunsViolation,
  kubeconfigRole,
  ownOutputRead,
  type RegistrationPaths,
  readsOf,
  registrationViolation,
  writesOf,
} from '../../../../src/inventory/policy/registration-rules.ts';

const registration = (name: string, spec: Partial<RegistrationPaths['spec']> = {}): RegistrationPaths => ({
  name,
  spec: { reads: [], kubeconfig: 'none', modes: ['managed', 'byoc'], ...spec },
});
const network = registration('network');
const kubeconfig = registration('kubeconfig', { modes: ['managed'] });
const byoc = registration('byoc', { modes: ['byoc'], writes: ['/status/outputs/kubeconfig'] });

describe('registrations', () => {
  const cases: [string, RegistrationPaths, others: RegistrationPaths[], field: string | undefined][] = [
    ['one alone', network, [], undefined],
    ['one beside others', network, [kubeconfig, byoc], undefined],
    ['one that replaces itself', network, [network], undefined],
    ['two of one path in different modes', byoc, [kubeconfig], undefined],
    ['one that reads another output', registration('a', { reads: ['/status/outputs/network'] }), [network], undefined],
    ['the output of another', registration('vnet', { writes: ['/status/outputs/network'] }), [network], 'spec.writes'],
    [
      'a part of the output of another',
      registration('vnet', { writes: ['/status/outputs/network/vnet'] }),
      [network],
      'spec.writes',
    ],
    [
      'a parent of the output of another',
      network,
      [registration('vnet', { writes: ['/status/outputs/network/vnet'] })],
      'metadata.name',
    ],
    ['one path in a mode of both', registration('kubeconfig'), [byoc], 'metadata.name'],
    ['a path that begins like that of another', registration('net'), [network], undefined],
    ['its own output', registration('network', { reads: ['/status/outputs/network/v'] }), [], 'spec.reads'],
    ['all outputs, its own too', registration('a', { reads: ['/status/outputs'] }), [], 'spec.reads'],
  ];
  for (const [what, one, others, field] of cases) {
    it(`are ${field ? 'rejected' : 'accepted'}: ${what}`, () => {
      const violation = registrationViolation(one, others);
      assert.deepEqual(violation && [violation.code, violation.field], field && ['PathTaken', field]);
    });
  }

  it('cannot be deleted while they have runs', () => {
    const violation = hasRunsViolation('network', ['fleet/orders', 'fleet/b', 'fleet/c', 'fleet/d']);
    assert.deepEqual([violation.code, violation.status], ['HasRuns', 422]);
    assert.match(violation.message, /network still has runs for fleet\/orders, fleet\/b, fleet\/c, and more;/);
    assert.match(violation.message, /orders -n fleet abandon\.inventory\.drawbridge\.dev\/network=REASON$/);
  });
});

const plain = { reads: [], kubeconfig: 'none' } as const;
const paths = (fields: object) => ({ ...plain, reads: [], ...fields });

describe('the paths of a registration', () => {
  it('default to its own outputs', () => {
    assert.deepEqual(writesOf('network', paths({})), ['/status/outputs/network']);
    assert.deepEqual(writesOf('byoc', paths({ writes: ['/status/outputs/kubeconfig'] })), [
      '/status/outputs/kubeconfig',
    ]);
  });

  it('include the implied reads once', () => {
    assert.deepEqual(readsOf('cluster', paths({ reads: ['/status/outputs/network/vnetName', '/spec/mode'] })), [
      '/spec/components/cluster/config',
      '/spec/components/cluster/enabled',
      '/spec/mode',
      '/status/outputs/network/vnetName',
    ]);
    assert.ok(readsOf('proxy', paths({ kubeconfig: 'read' })).includes('/status/outputs/kubeconfig/version'));
  });

  it('identify the producer of the kubeconfig, which does not read its version', () => {
    const producer = paths({ kubeconfig: 'read', writes: ['/status/outputs/kubeconfig'] });
    assert.equal(kubeconfigRole('byoc', producer), 'produce');
    assert.equal(readsOf('byoc', producer).includes('/status/outputs/kubeconfig/version'), false);
    assert.equal(kubeconfigRole('kubeconfig', paths({})), 'produce');
    assert.equal(kubeconfigRole('proxy', paths({ kubeconfig: 'read' })), 'read');
  });

  for (const [read, found] of [
    ['/status/outputs', true],
    ['/status/outputs/network', true],
    ['/status/outputs/network/vnetName', true],
    ['/status/outputs/networks', false],
    ['/spec/cluster', false],
  ] as const) {
    it(`${found ? 'find' : 'allow'} ${read} among the reads of network`, () => {
      assert.equal(ownOutputRead('network', paths({ reads: [read] })), found ? read : undefined);
    });
  }
});
