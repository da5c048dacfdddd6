import assert from 'node:assert/strict';
import { clusterRoleBindings, secrets, serviceAccounts } from '../../../../src/api/resources.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { ComponentStage, entryUid } from '../../../support/inventory/component-stage.ts';
import { simulatedKubeconfig } from '../../../support/inventory/kubeconfigs.ts';

const kubeconfigSecretRef = { name: 'supplied', key: 'config' };

describe('byoc', () => {
  const stage = async (kubeconfig: string | undefined): Promise<ComponentStage> => {
    const world = new ComponentStage();
    const components = { byoc: { config: { lifetimeSeconds: 3600 } } };
    await world.start({ mode: 'byoc', kubeconfigSecretRef, components });
    world.secret('supplied', kubeconfig);
    return world;
  };
  const stored = (world: ComponentStage): string => {
    const data = world.management.find(secrets, { namespace: 'fleet', name: `kc-${entryUid}` })?.['data'];
    return Buffer.from(String(valueAt(data, '/config')), 'base64').toString();
  };

  const unavailable = (): never => {
    throw new ApiError(503, 'ServiceUnavailable', 'away');
  };

  it('publishes a new kubeconfig in the same place instead of the supplied one', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    assert.equal((await world.run('byoc')).outcome, 'Done');
    assert.deepEqual(valueAt(world.outputs, '/kubeconfig/secretRef'), { name: `kc-${entryUid}`, key: 'config' });
    assert.match(stored(world), /token-1-of-drawbridge-/);
    assert.doesNotMatch(stored(world), /administrator/);
  });

  it('serves consumers like a managed cluster', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    await world.run('byoc');
    assert.equal((await world.run('connectivity-proxy')).outcome, 'Done');
    assert.deepEqual(world.opened.slice(-1), ['https://managed.example.org']);
  });

  it('replaces its kubeconfig by time, and when another one is supplied', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    const versions = new Set<unknown>();
    const look = async (): Promise<void> => {
      await world.run('byoc');
      versions.add(valueAt(world.outputs, '/kubeconfig/version'));
    };
    await look();
    await look();
    assert.equal(versions.size, 1);
    await world.clock.advance(3_600_000 * 0.7);
    await look();
    assert.equal(versions.size, 2);
    world.secret('supplied', simulatedKubeconfig('successor'));
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
      const world = await stage(kubeconfig);
      const outcome = await world.run('byoc');
      assert.equal(outcome.outcome, 'Failed');
      assert.match(outcome.message ?? '', message);
      assert.deepEqual(world.opened, []);
    });
  }

  it('fails on a kubeconfig without administrator permissions', async () => {
    const world = await stage(simulatedKubeconfig('viewer'));
    world.managed.fault = ({ verb, plural }) => {
      if (verb === 'create' && plural === 'clusterrolebindings') throw new ApiError(403, 'Forbidden', 'no');
    };
    const outcome = await world.run('byoc');
    assert.equal(outcome.outcome, 'Failed');
    assert.match(outcome.message ?? '', /the supplied kubeconfig has insufficient permissions/);
  });

  it('answers Retry while the cluster or the Secret is unavailable', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    world.managed.fault = unavailable;
    assert.equal((await world.run('byoc')).outcome, 'Retry');
    world.management.drop(secrets, { namespace: 'fleet', name: 'supplied' });
    assert.equal((await world.run('byoc')).outcome, 'Retry');
  });

  for (const [what, spec, kubeconfig] of [
    ['no Secret was named', {}, undefined],
    ['the Secret never existed', { kubeconfigSecretRef: { name: 'never', key: 'config' } }, undefined],
    ['the Secret is empty', { kubeconfigSecretRef }, ''],
    ['the Secret contains no kubeconfig', { kubeconfigSecretRef }, 'hello'],
  ] as const) {
    it(`tears down an entry that never worked: ${what}`, async () => {
      const world = new ComponentStage();
      await world.start({ mode: 'byoc', ...spec });
      if (kubeconfig !== undefined) world.secret('supplied', kubeconfig);
      assert.notEqual((await world.run('byoc')).outcome, 'Done');
      assert.deepEqual(await world.run('byoc', 'delete'), { outcome: 'Deleted' });
      const lists = world.management.calls.filter(({ verb, name }) => verb === 'get' && name.endsWith('/'));
      assert.deepEqual(lists, [], 'no list of Secrets is requested');
    });
  }

  it('tears down an entry whose cluster never answered', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    world.managed.fault = unavailable;
    await world.run('byoc');
    assert.deepEqual(await world.run('byoc', 'delete'), { outcome: 'Deleted' });
  });

  it('removes its account with its own kubeconfig if the supplied one is gone or rejected', async () => {
    for (const [supplied, denied] of [
      [undefined, ''],
      ['hello', ''],
      [simulatedKubeconfig('administrator'), 'of-administrator'],
    ] as const) {
      const world = await stage(simulatedKubeconfig('administrator'));
      await world.run('byoc');
      world.secret('supplied', supplied);
      world.denied = denied;
      assert.deepEqual(await world.run('byoc', 'delete'), { outcome: 'Deleted' });
      assert.deepEqual([world.managed.list(serviceAccounts), world.managed.list(clusterRoleBindings)], [[], []]);
    }
  });

  it('removes its account with the supplied kubeconfig if its own is rejected', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    await world.run('byoc');
    world.denied = 'token-1-of-drawbridge';
    assert.deepEqual(await world.run('byoc', 'delete'), { outcome: 'Deleted' });
    assert.deepEqual(world.managed.list(serviceAccounts), []);
  });

  it('retries while the cluster with its account is unreachable', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    await world.run('byoc');
    world.managed.fault = unavailable;
    assert.equal((await world.run('byoc', 'delete')).outcome, 'Retry');
  });

  for (const [what, away] of [
    ['the cluster is away', ({ managed }: ComponentStage) => Object.assign(managed, { fault: unavailable })],
    ['the supplied kubeconfig is gone', (world: ComponentStage) => world.secret('supplied', undefined)],
  ] as const) {
    it(`leaves no cluster-admin behind if its first run ends early and ${what} at teardown`, async () => {
      for (let writes = 0; writes <= 6; writes++) {
        const world = await stage(simulatedKubeconfig('administrator'));
        let written = 0;
        for (const cluster of [world.management, world.managed]) {
          cluster.fault = ({ verb }) => {
            if (verb !== 'get' && ++written > writes) unavailable();
          };
        }
        // After five writes, the server itself cannot store the outputs.
        await world.run('byoc').catch(() => undefined);
        world.management.fault = () => undefined;
        world.managed.fault = () => undefined;
        away(world);
        const { outcome } = await world.run('byoc', 'delete');
        const bound = world.managed.list(clusterRoleBindings).length;
        assert.ok(outcome !== 'Deleted' || bound === 0, `after ${writes} writes`);
      }
    });
  }

  it('removes only its account from the cluster at teardown', async () => {
    const world = await stage(simulatedKubeconfig('administrator'));
    await world.run('byoc');
    assert.equal(world.managed.list(serviceAccounts).length, 1);
    assert.deepEqual(await world.run('byoc', 'delete'), { outcome: 'Deleted' });
    assert.deepEqual(world.managed.list(serviceAccounts), []);
    const account = `drawbridge-${entryUid}`;
    assert.deepEqual(
      world.managed.writes.filter((write) => write.startsWith('delete')),
      [`delete clusterrolebindings ${account}`, `delete serviceaccounts kube-system/${account}`],
    );
  });
});
