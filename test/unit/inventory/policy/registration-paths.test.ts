import assert from 'node:assert/strict';
import {
  kubeconfigRole,
  ownOutputRead,
  readsOf,
  writesOf,
} from '../../../../src/inventory/policy/registration-rules.ts';

const plain = { reads: [], kubeconfig: 'none' } as const;
const paths = (fields: object) => ({ ...plain, reads: [], ...fields });

describe('the paths of a registration', () => {
  it('are its own outputs, unless it says otherwise', () => {
    assert.deepEqual(writesOf('network', paths({})), ['/status/outputs/network']);
    assert.deepEqual(writesOf('byoc', paths({ writes: ['/status/outputs/kubeconfig'] })), [
      '/status/outputs/kubeconfig',
    ]);
  });

  it('include what every component reads, once', () => {
    assert.deepEqual(readsOf('cluster', paths({ reads: ['/status/outputs/network/vnetName', '/spec/mode'] })), [
      '/spec/components/cluster/config',
      '/spec/components/cluster/enabled',
      '/spec/mode',
      '/status/outputs/network/vnetName',
    ]);
    assert.ok(readsOf('proxy', paths({ kubeconfig: 'read' })).includes('/status/outputs/kubeconfig/version'));
  });

  it('tell who makes the kubeconfig, who never reads its version as an input', () => {
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
