import assert from 'node:assert/strict';
import { secrets, serviceAccounts } from '../../../../src/api/resources.ts';
import { clusterRoleBindings } from '../../../../src/inventory/components/byoc.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { ComponentStage, entryUid } from '../../../support/inventory/component-stage.ts';
import { simulatedKubeconfig } from '../../../support/inventory/kubeconfigs.ts';

describe('byoc', () => {
  const stage = async (kubeconfig: string | undefined): Promise<ComponentStage> => {
    const made = new ComponentStage();
    await made.start({
      mode: 'byoc',
      kubeconfigSecretRef: { name: 'mine', key: 'config' },
      components: { byoc: { config: { lifetimeSeconds: 3600 } } },
    });
    made.secret('mine', kubeconfig);
    return made;
  };
  const stored = (made: ComponentStage): string => {
    const data = made.management.find(secrets, { namespace: 'fleet', name: `kc-${entryUid}` })?.['data'];
    return Buffer.from(String(valueAt(data, '/config')), 'base64').toString();
  };

  it('publishes a new kubeconfig in the same place instead of the supplied one', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    assert.equal((await made.run('byoc')).outcome, 'Done');
    assert.deepEqual(valueAt(made.outputs, '/kubeconfig/secretRef'), { name: `kc-${entryUid}`, key: 'config' });
    assert.match(stored(made), /token-1-of-drawbridge-/);
    assert.doesNotMatch(stored(made), /administrator/);
  });

  it('serves consumers like a managed cluster', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    await made.run('byoc');
    assert.equal((await made.run('connectivity-proxy')).outcome, 'Done');
    assert.deepEqual(made.opened.slice(-1), ['https://managed.example.org']);
  });

  it('replaces its kubeconfig by time, and when another one is supplied', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    const versions = new Set<unknown>();
    const look = async (): Promise<void> => {
      await made.run('byoc');
      versions.add(valueAt(made.outputs, '/kubeconfig/version'));
    };
    await look();
    await look();
    assert.equal(versions.size, 1);
    await made.clock.advance(3_600_000 * 0.7);
    await look();
    assert.equal(versions.size, 2);
    made.secret('mine', simulatedKubeconfig('successor'));
    await look();
    assert.equal(versions.size, 3);
  });

  for (const [what, kubeconfig, message] of [
    ['nothing', undefined, /has no key config/],
    ['no kubeconfig', 'hello', /not a YAML mapping/],
    ['a program to run', simulatedKubeconfig('x', { exec: { command: 'sh' } }), /exec of the user is not allowed/],
    ['a file to read', simulatedKubeconfig('x', { tokenFile: '/etc/shadow' }), /tokenFile of the user is not allowed/],
  ] as const) {
    it(`fails permanently on a Secret with ${what}, and connects to nothing`, async () => {
      const made = await stage(kubeconfig);
      const outcome = await made.run('byoc');
      assert.equal(outcome.outcome, 'Failed');
      assert.match(outcome.message ?? '', message);
      assert.deepEqual(made.opened, []);
    });
  }

  it('fails on a kubeconfig without administrator permissions', async () => {
    const made = await stage(simulatedKubeconfig('somebody'));
    made.managed.fault = ({ verb, plural }) => {
      if (verb === 'create' && plural === 'clusterrolebindings') throw new ApiError(403, 'Forbidden', 'no');
    };
    const outcome = await made.run('byoc');
    assert.equal(outcome.outcome, 'Failed');
    assert.match(outcome.message ?? '', /the supplied kubeconfig has insufficient permissions/);
  });

  it('answers Retry while the cluster or the Secret is unavailable', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    made.managed.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    assert.equal((await made.run('byoc')).outcome, 'Retry');
    made.management.drop(secrets, { namespace: 'fleet', name: 'mine' });
    assert.equal((await made.run('byoc')).outcome, 'Retry');
  });

  for (const [what, spec, kubeconfig] of [
    ['no Secret was named', {}, undefined],
    ['the Secret never existed', { kubeconfigSecretRef: { name: 'never', key: 'config' } }, undefined],
    ['the Secret is empty', { kubeconfigSecretRef: { name: 'mine', key: 'config' } }, ''],
    ['the Secret holds no kubeconfig', { kubeconfigSecretRef: { name: 'mine', key: 'config' } }, 'hello'],
  ] as const) {
    it(`tears down an entry that never worked: ${what}`, async () => {
      const made = new ComponentStage();
      await made.start({ mode: 'byoc', ...spec });
      if (kubeconfig !== undefined) made.secret('mine', kubeconfig);
      assert.notEqual((await made.run('byoc')).outcome, 'Done');
      assert.deepEqual(await made.run('byoc', 'delete'), { outcome: 'Deleted' });
      assert.deepEqual(
        made.management.calls.filter(({ verb, name }) => verb === 'get' && name.endsWith('/')),
        [],
        'no list of Secrets is requested',
      );
    });
  }

  it('tears down an entry whose cluster never answered', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    made.managed.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    await made.run('byoc');
    assert.deepEqual(await made.run('byoc', 'delete'), { outcome: 'Deleted' });
  });

  it('removes its account with its own kubeconfig if the supplied one is gone or rejected', async () => {
    for (const [supplied, denied] of [
      [undefined, ''],
      ['hello', ''],
      [simulatedKubeconfig('administrator'), 'of-administrator'],
    ] as const) {
      const made = await stage(simulatedKubeconfig('administrator'));
      await made.run('byoc');
      made.secret('mine', supplied);
      made.denied = denied;
      assert.deepEqual(await made.run('byoc', 'delete'), { outcome: 'Deleted' });
      assert.deepEqual([made.managed.list(serviceAccounts), made.managed.list(clusterRoleBindings)], [[], []]);
    }
  });

  it('removes its account with the supplied kubeconfig if its own is rejected', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    await made.run('byoc');
    made.denied = 'token-1-of-drawbridge';
    assert.deepEqual(await made.run('byoc', 'delete'), { outcome: 'Deleted' });
    assert.deepEqual(made.managed.list(serviceAccounts), []);
  });

  it('retries while the cluster with its account is unreachable', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    await made.run('byoc');
    made.managed.fault = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    assert.equal((await made.run('byoc', 'delete')).outcome, 'Retry');
  });

  it('removes only its account from the cluster at teardown', async () => {
    const made = await stage(simulatedKubeconfig('administrator'));
    await made.run('byoc');
    assert.equal(made.managed.list(serviceAccounts).length, 1);
    assert.deepEqual(await made.run('byoc', 'delete'), { outcome: 'Deleted' });
    assert.deepEqual(made.managed.list(serviceAccounts), []);
    assert.deepEqual(
      made.managed.writes.filter((write) => write.startsWith('delete')),
      [
        `delete clusterrolebindings drawbridge-${entryUid}`,
        `delete serviceaccounts kube-system/drawbridge-${entryUid}`,
      ],
    );
  });
});
