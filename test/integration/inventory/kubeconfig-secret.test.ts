import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { clusterInventories } from '../../../src/api/inventory/names.ts';
import { roleBindings, roles, secrets } from '../../../src/api/resources.ts';
import { clock } from '../../../src/features/feature.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import type { Client } from '../../../src/kube/client.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { codeOf, viewOf, WriteAuthorizationStage } from '../../support/inventory/write-authorization-stage.ts';

const byoc = { name: 'byoc', kubeconfig: 'produce' } as const;
const eventing = { name: 'eventing', kubeconfig: 'read' } as const;

describe('a supplied kubeconfig', function () {
  this.timeout(120_000);
  let stage: WriteAuthorizationStage;
  const clusters: OpenCluster[] = [];
  /** May write entries and read Secrets. */
  let alice: Client;
  /** May write entries. */
  let bob: Client;

  before(async () => {
    stage = await WriteAuthorizationStage.open();
    [alice, bob] = [await person('alice', ['fleet', 'keys']), await person('bob', ['fleet'])];
    const { namespace } = stage;
    const metadata = { namespace };
    await role('fleet', [{ apiGroups: ['inventory.drawbridge.dev'], resources: ['clusterinventories'], verbs: ['*'] }]);
    await role('keys', [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]);
    for (const name of ['admin-a', 'admin-b']) {
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...metadata, name },
        stringData: { config: name },
      };
      await stage.admin.create(secrets, secret);
    }
    const isAllowed = async (): Promise<boolean> => {
      const list = bob.list(clusterInventories, { namespace });
      return (await codeOf(list)) === 200 && (await codeOf(alice.get(secrets, { namespace, name: 'admin-a' }))) === 200;
    };
    await until('the rights of alice and bob', isAllowed, { timeoutMs: 30_000 });
  });
  after(async () => {
    for (const cluster of clusters) await cluster.close();
    await stage?.close();
  });

  const supplied = (name: string, secret: string, who: Client, more: object = {}) =>
    stage.entry(name, { mode: 'byoc', kubeconfigSecretRef: { name: secret }, ...more }, who);
  const setterOf = (entry: Entry) => entry.kubeconfigSetBy?.username;
  const reads = async (entry: Entry, component: typeof byoc | typeof eventing, secret: string): Promise<number> => {
    const { token } = await stage.token(entry, component);
    return stage.verdict(token, (client) => client.get(secrets, { namespace: stage.namespace, name: secret }));
  };
  const change = async ({ ref }: Entry, spec: object, who: Client): Promise<Entry> =>
    viewOf(await who.mergePatch(clusterInventories, ref, { spec }));

  it('records the user who named it, whatever was sent', async () => {
    const forged = { kubeconfigSetBy: { username: 'alice', groups: ['keys'] } };
    const entry = await supplied('forged', 'admin-a', bob, forged);
    assert.equal(setterOf(entry), 'bob');
    assert.deepEqual(entry.kubeconfigSetBy?.groups.includes('keys'), false);
    assert.equal(setterOf(await change(entry, forged, bob)), 'bob');
  });

  it('is readable only by its component, and only if the user who named it may read it', async () => {
    const mine = await supplied('mine', 'admin-a', alice);
    assert.deepEqual(
      [await reads(mine, byoc, 'admin-a'), await reads(mine, byoc, 'admin-b'), await reads(mine, eventing, 'admin-a')],
      [200, 403, 403],
    );
    const stolen = await supplied('stolen', 'admin-a', bob);
    assert.equal(await reads(stolen, byoc, 'admin-a'), 403);
    assert.deepEqual(stage.events, ['SecretNotReadable']);
  });

  it('is no longer readable after a user without permission names it', async () => {
    const entry = await supplied('taken', 'admin-a', alice);
    assert.equal(await reads(entry, byoc, 'admin-a'), 200);
    const taken = await change(entry, { kubeconfigSecretRef: { name: 'admin-b' } }, bob);
    assert.equal(await reads(taken, byoc, 'admin-b'), 403);
    // The API server may lag briefly.
    const isOver = async (): Promise<boolean> => (await reads(taken, byoc, 'admin-a')) === 403;
    await until('the end', isOver, { timeoutMs: 30_000 });
  });

  async function person(name: string, groups: string[]): Promise<Client> {
    const credentials = await fileCredentials(await stage.plane.kubeconfigFor(name, groups));
    const cluster = openCluster(credentials, { clock, log: noLog });
    clusters.push(cluster);
    return cluster.client;
  }

  async function role(group: string, rules: object[]): Promise<void> {
    const metadata = { namespace: stage.namespace, name: group };
    const apiGroup = 'rbac.authorization.k8s.io';
    const apiVersion = `${apiGroup}/v1`;
    await stage.admin.create(roles, { apiVersion, kind: 'Role', metadata, rules });
    await stage.admin.create(roleBindings, {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup, kind: 'Role', name: group },
      subjects: [{ apiGroup, kind: 'Group', name: group }],
    });
  }
});
