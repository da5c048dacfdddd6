import assert from 'node:assert/strict';
import { outputsViolation, type Writer, writeViolation } from '../../../../src/inventory/policy/component-write.ts';

const uid = '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001';
const network: Writer = { component: 'network', entryUid: uid, writes: ['/status/outputs/network'] };
const twice: Writer = { ...network, writes: ['/status/outputs/network', '/status/outputs/shared/cidr'] };
const kubeconfig: Writer = { component: 'kubeconfig', entryUid: uid, writes: ['/status/outputs/kubeconfig'] };
const conditions = [{ type: 'Ready', status: 'True' }];
const ref = (name: string, more: object = {}) => ({ outputs: { kubeconfig: { secretRef: { name, ...more } } } });

describe('a component’s write of the status of an entry', () => {
  const cases: [string, Writer, before: unknown, after: unknown, field: string | undefined][] = [
    ['its first output', network, undefined, { outputs: { network: { vnetName: 'v' } } }, undefined],
    ['the removal of its output and the parent object', network, { outputs: { network: { v: 1 } } }, {}, undefined],
    [
      'the output of another component',
      network,
      { outputs: { cluster: { endpoint: 'a' } } },
      { outputs: { cluster: { endpoint: 'b' }, network: { v: 1 } } },
      '/status/outputs/cluster',
    ],
    [
      'a neighbour of its path',
      twice,
      { outputs: { shared: { cidr: 'x' } } },
      { outputs: { shared: { cidr: 'x', region: 'y' } } },
      '/status/outputs/shared/region',
    ],
    ['an empty object elsewhere', network, { outputs: {} }, { outputs: { cluster: {} } }, '/status/outputs/cluster'],
    [
      'the removal of all outputs',
      network,
      { outputs: { network: { v: 1 }, cluster: { e: 1 } } },
      {},
      '/status/outputs/cluster',
    ],
    ['null as outputs', network, { outputs: {} }, { outputs: null }, '/status/outputs'],
    [
      'conditions',
      network,
      { conditions },
      { conditions: [{ ...conditions[0], status: 'False' }] },
      '/status/conditions',
    ],
    [
      'the component statuses',
      network,
      { components: [{ name: 'network', state: 'Failed' }] },
      { components: [{ name: 'network', state: 'Done' }] },
      '/status/components',
    ],
    ['the reference to its Secret', kubeconfig, {}, ref(`kc-${uid}`, { key: 'config' }), undefined],
    ['a reference to another Secret', kubeconfig, {}, ref('admin-token'), '/status/outputs/kubeconfig/secretRef'],
    [
      'a reference to another Secret by an owner of more paths',
      { ...kubeconfig, writes: ['/status/outputs/dns', ...kubeconfig.writes] },
      {},
      ref('admin-token'),
      '/status/outputs/kubeconfig/secretRef',
    ],
    [
      'a reference into another namespace',
      kubeconfig,
      {},
      ref(`kc-${uid}`, { namespace: 'kube-system' }),
      '/status/outputs/kubeconfig/secretRef',
    ],
    [
      'a malformed reference',
      kubeconfig,
      {},
      { outputs: { kubeconfig: { secretRef: 'kc' } } },
      '/status/outputs/kubeconfig/secretRef',
    ],
    ['a reference under its own path', network, {}, { outputs: { network: { secretRef: 'x' } } }, undefined],
  ];
  for (const [what, writer, before, after, field] of cases) {
    it(`is ${field ? 'rejected' : 'accepted'}: ${what}`, () => {
      const violation = writeViolation(writer, before, after);
      const found = violation && [violation.field, violation.code, violation.status];
      assert.deepEqual(found, field && [field, 'ForeignPath', 403]);
    });
  }

  it('follows the same rule if the server writes on behalf of the component', () => {
    const outputs = { cluster: { endpoint: 'a' }, network: { vnetName: 'v', old: 1 } };
    assert.equal(outputsViolation(network, outputs, { network: { vnetName: 'w', old: null } }), undefined);
    assert.equal(outputsViolation(network, outputs, { cluster: { endpoint: 'a' } }), undefined);
    assert.equal(outputsViolation(network, undefined, { network: {} }), undefined);
    assert.equal(outputsViolation(network, outputs, { cluster: null })?.field, '/status/outputs/cluster');
    assert.equal(outputsViolation(network, outputs, { cluster: { x: 1 } })?.field, '/status/outputs/cluster');
    assert.equal(outputsViolation(network, outputs, 'nonsense')?.code, 'ForeignPath');
    assert.equal(outputsViolation(kubeconfig, {}, { kubeconfig: { secretRef: { name: 'x' } } })?.code, 'ForeignPath');
  });

  it('yields a message with the component and its paths', () => {
    const violation = writeViolation(twice, {}, { outputs: { cluster: { x: 1 } } });
    assert.match(
      violation?.message ?? '',
      /component network does not own \/status\/outputs\/cluster; it may only write \/status\/outputs\/network, \/status/,
    );
  });
});
