import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import {
  accountName,
  clusterInventories,
  componentReconcilers,
  reconcileRuns,
} from '../../../src/api/inventory/names.ts';
import { roleBindings, roles, serviceAccounts } from '../../../src/api/resources.ts';
import { entryView } from '../../../src/inventory/stores/kube-inventory-store.ts';
import { systemClock as clock } from '../../../src/kit/clock.ts';
import type { Client } from '../../../src/kube/client.ts';
import { type Credentials, staticCredentials } from '../../../src/kube/credentials.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { report } from '../../support/inventory/run-report.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { codeOf } from '../../support/inventory/write-authorization-stage.ts';

const rbac = 'rbac.authorization.k8s.io';
const patience = { timeoutMs: 60_000, everyMs: 50 };
const entryRules = (resource: string, ...verbs: string[]) => ({
  apiGroups: [clusterInventories.group],
  resources: [resource],
  verbs,
});

describe('users and service accounts with permissions on entries', function () {
  this.timeout(120_000);
  let stage: InventoryStage;
  let run: ReconcileRequest | undefined;
  const opened: OpenCluster[] = [];

  before(async () => {
    stage = await InventoryStage.open();
    await stage.component('network', (request) => {
      run = request;
      return { status: 202, body: { leaseSeconds: 300 } };
    });
    await stage.entry('one');
    await stage.until('the run to go on', async () => (await stage.records())[0]?.asynchronous === true);
  });
  after(async () => {
    for (const cluster of opened) await cluster.close();
    if (run) await report(run, { outcome: 'Done' });
    await stage?.close();
  });

  const one = () => ({ namespace: stage.namespace, name: 'one' });
  const get = (client: Client) => client.get(clusterInventories, one());
  const list = (client: Client) => client.list(clusterInventories, { namespace: stage.namespace });
  const suspend = (client: Client) =>
    client.mergePatch(clusterInventories, one(), { spec: { cluster: { by: 'them' } } });
  const publish = (client: Client) =>
    client.mergePatch(
      clusterInventories,
      one(),
      { status: { outputs: { network: { forged: true } } } },
      { subresource: 'status' },
    );
  const verdicts = async (client: Client): Promise<Record<string, number>> => ({
    get: await codeOf(get(client)),
    list: await codeOf(list(client)),
    spec: await codeOf(suspend(client)),
    status: await codeOf(publish(client)),
    delete: await codeOf(client.delete(clusterInventories, one(), {})),
  });

  for (const [who, login] of [
    ['a person', (name: string) => person(name)],
    ['a service account', (name: string) => service(name)],
  ] as const) {
    it(`${who} with the role view gets, lists, and watches them, and cannot change them`, async () => {
      const { cluster, subject } = await login('observer');
      await bind(subject, { kind: 'ClusterRole', name: 'view' });
      const { client } = cluster;
      // The permissions of the chart are aggregated into `view` a moment later.
      await until('the right to view', async () => (await codeOf(get(client))) === 200, patience);
      const { delete: removed, ...rest } = await verdicts(client);
      assert.deepEqual([rest, removed], [{ get: 200, list: 200, spec: 403, status: 403 }, 403]);
      assert.equal(await codeOf(client.list(reconcileRuns, { namespace: stage.namespace })), 200);
      assert.equal(await codeOf(client.list(componentReconcilers, {})), 403);

      const { store, release } = cluster.watch({
        resource: clusterInventories,
        namespace: stage.namespace,
        project: entryView,
      });
      await store.whenSynced(AbortSignal.timeout(30_000));
      const label = `seen-by-${subject.kind.toLowerCase()}`;
      await stage.patch('one', { metadata: { labels: { [label]: 'yes' } } });
      const isSeen = (): boolean => [...store.list()].some(({ labels }) => labels[label] === 'yes');
      await until('the change', async () => isSeen(), patience);
      release();
    });
  }

  it('with partial permissions can do exactly that', async () => {
    const { cluster, subject } = await person('editor');
    await bind(subject, await role('editor', entryRules('clusterinventories', 'get', 'patch')));
    const { client } = cluster;
    await until('the right to edit', async () => (await codeOf(get(client))) === 200, patience);
    assert.deepEqual(await verdicts(client), { get: 200, list: 403, spec: 200, status: 403, delete: 403 });
    // A status in a write of the spec is ignored.
    const both = { spec: { cluster: { by: 'both' } }, status: { outputs: { network: { forged: true } } } };
    assert.equal(await codeOf(client.mergePatch(clusterInventories, one(), both)), 200);
    const { spec, status } = (await stage.get('one')).content;
    assert.deepEqual([(spec as { cluster: unknown }).cluster, status.outputs], [{ by: 'both' }, {}]);
  });

  it('are not mistaken for components, neither by reports nor by account names', async () => {
    assert.ok(run);
    const forged = { outcome: 'Done', outputs: { network: { forged: true } } };
    const observer = await stage.plane.serviceAccountToken(stage.namespace, 'observer');
    assert.equal(await report(run, forged, { token: observer }), 403);
    assert.equal(await report(run, forged, { token: 'nobody' }), 401);

    // A user who may create accounts and grant status writes creates an account with a component's name.
    for (const name of [accountName(run.entry.id, 'ghost'), 'inventory-plane']) {
      const { cluster, subject, token } = await service(name);
      await bind(subject, await role(name, entryRules('clusterinventories/status', 'get', 'patch')));
      const granted = async (): Promise<boolean> =>
        (await codeOf(cluster.client.get(clusterInventories, one(), { subresource: 'status' }))) === 200;
      await until('its right', granted, patience);
      assert.equal(await codeOf(publish(cluster.client)), 403);
      assert.equal(await report(run, forged, { token }), 403);
    }
    assert.deepEqual((await stage.get('one')).content.status.outputs, {});
    assert.equal((await stage.records())[0]?.phase, 'Running');
  });

  interface Subject {
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
    readonly apiGroup?: string;
  }

  function opens(credentials: Credentials): OpenCluster {
    const cluster = openCluster(credentials, { clock });
    opened.push(cluster);
    return cluster;
  }

  async function person(name: string): Promise<{ cluster: OpenCluster; subject: Subject }> {
    const cluster = opens(await fileCredentials(await stage.plane.kubeconfigFor(name)));
    return { cluster, subject: { kind: 'User', name, apiGroup: rbac } };
  }

  async function service(name: string): Promise<{ cluster: OpenCluster; subject: Subject; token: string }> {
    const { namespace, plane } = stage;
    const metadata = { namespace, name };
    await stage.cluster.client.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    const token = await plane.serviceAccountToken(namespace, name);
    const { server, authority } = plane;
    const cluster = opens(staticCredentials({ server, token, tls: { ca: authority.certificate } }));
    return { cluster, subject: { kind: 'ServiceAccount', name, namespace }, token };
  }

  async function role(name: string, ...rules: object[]): Promise<{ kind: 'Role'; name: string }> {
    const metadata = { namespace: stage.namespace, name };
    await stage.cluster.client.create(roles, { apiVersion: `${rbac}/v1`, kind: 'Role', metadata, rules });
    return { kind: 'Role', name };
  }

  async function bind(subject: Subject, to: { readonly kind: string; readonly name: string }): Promise<void> {
    await stage.cluster.client.create(roleBindings, {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { namespace: stage.namespace, name: `${subject.kind.toLowerCase()}-${subject.name}` },
      roleRef: { apiGroup: rbac, ...to },
      subjects: [subject],
    });
  }
});
