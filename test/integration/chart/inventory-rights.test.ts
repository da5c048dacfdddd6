import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import { InventoryServer } from '../../../sandbox/inventory-server.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { reconcilePath } from '../../../src/api/inventory/contract/request.ts';
import { clusterInventories, componentReconcilers } from '../../../src/api/inventory/names.ts';
import type { KubeObject, ObjectName } from '../../../src/api/object.ts';
import { roleBindings, roles, secrets, serviceAccounts } from '../../../src/api/resources.ts';
import { headNames } from '../../../src/audit/head.ts';
import type { VerifyReport } from '../../../src/audit/verify/report.ts';
import { clock } from '../../../src/features/feature.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import { noLog } from '../../../src/observe/log.ts';
import { deniedCalls, rightFor, serverRightsIn } from '../../support/chart-manifests.ts';
import { objectOf } from '../../support/inventory/write-authorization-stage.ts';
import { testNamespace } from '../../support/plane.ts';

const home = 'drawbridge-system';
const program = fileURLToPath(new URL('../../../dist/drawbridge.js', import.meta.url));
const execFileAsync = promisify(execFile);
const serverUser = `system:serviceaccount:${home}:drawbridge-inventory`;

/** Permissions that the server grants, or that need a fault, and where it uses them. */
const usedElsewhere: Readonly<Record<string, string>> = {
  // Server-side apply needs this permission too, but the audit log names only patch.
  'create /configmaps': '../access/audit-journal.test.ts',
  'get inventory.drawbridge.dev/clusterinventories': '../inventory/run-token.test.ts',
  'get inventory.drawbridge.dev/clusterinventories/status': '../../unit/inventory/accounts/entry-accounts.test.ts',
  'get inventory.drawbridge.dev/componentreconcilers': '../../unit/inventory/admission-reads.test.ts',
  // Only a replica that waits for the Lease watches it.
  'list coordination.k8s.io/leases': '../../unit/kube/lease-gate.test.ts',
  'watch coordination.k8s.io/leases': '../../unit/kube/lease-gate.test.ts',
  'patch /secrets': '../inventory/run-token.test.ts',
  'patch events.k8s.io/events': '../../unit/kube/event-recorder.test.ts',
  'patch rbac.authorization.k8s.io/roles': '../../unit/inventory/accounts/entry-accounts.test.ts',
};

interface Asked {
  readonly run: { readonly id: string };
  readonly operation: string;
  readonly component: string;
  readonly auth: { readonly token: string };
  readonly callback: string;
}

describe('the inventory, with the permissions and the certificate of the chart', function () {
  this.timeout(120_000);
  let plane: Plane;
  let namespace: string;
  let server: InventoryServer;
  let components: Server;
  let admin: OpenCluster;
  let rights: Manifest[];
  let mark: number;

  before(async () => {
    // A plane of its own, because on a shared one, keys and heads of other servers change which permissions the server uses.
    plane = await startPlane();
    namespace = await testNamespace('rights', plane);
    admin = openCluster(await fileCredentials(plane.adminKubeconfig), { clock, log: noLog });
    const helm = new Helm({ program: plane.binaries.helm, home: plane.directory });
    const values = { features: { access: false, inventory: true }, inventory: { namespaces: [namespace] } };
    const shown = ['--show-only', 'templates/inventory.yaml'];
    const rendered = await helm.template(home, values, ...shown);
    rights = rendered.filter(({ kind }) => kind !== 'Service' && kind !== 'ServiceAccount');
    const metadata = { name: home };
    await plane.kubectl(['apply', '-f', '-'], { input: stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }) });
    await plane.kubectl(['apply', '-f', '-'], { input: asText(rights) });
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'];
    mark = plane.auditLog.mark();
    server = await InventoryServer.start(plane, {
      flags: [
        `--kubeconfig=${await plane.kubeconfigFor(serverUser, groups)}`,
        '--leader-elect=true',
        '--certificates=own',
        '--certificate-secret=drawbridge-inventory-own-certificate',
        '--certificate-names=127.0.0.1',
      ],
    });
    components = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        assert.equal(request.url, reconcilePath);
        const answer = answerTo(JSON.parse(Buffer.concat(chunks).toString()) as Asked);
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      });
    });
    await new Promise<void>((resolve) => components.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    await server?.stop();
    components?.closeAllConnections();
    components?.close();
    await admin?.close();
    await plane?.stop();
  });

  /** `network` answers at once; `kubeconfig` answers 202 and reports by callback. */
  function answerTo(asked: Asked): { status: number; body: object } {
    if (asked.operation === 'delete') return { status: 200, body: { outcome: 'Deleted' } };
    if (asked.component === 'network') {
      return { status: 200, body: { outcome: 'Done', outputs: { network: { vnetName: 'v' } } } };
    }
    const body = JSON.stringify({ run: asked.run.id, outcome: 'Done', outputs: { kubeconfig: { version: '1' } } });
    const headers = { authorization: `Bearer ${asked.auth.token}`, 'content-type': 'application/json' };
    void (async () => {
      // Waits until the server has stored the 202.
      await until('the report', async () => (await fetch(asked.callback, { method: 'POST', body, headers })).ok, {
        timeoutMs: 30_000,
      }).catch(() => undefined);
    })();
    return { status: 202, body: { leaseSeconds: 30 } };
  }

  it('runs components, accepts their reports, and tears down, without a denied call', async () => {
    const { client } = admin;
    const { port } = components.address() as AddressInfo;
    for (const name of ['network', 'kubeconfig']) {
      const spec = { endpoint: { url: `http://127.0.0.1:${port}` } };
      await client.create(componentReconcilers, objectOf(componentReconcilers, { name }, spec));
    }
    const ref = { namespace, name: 'rt-1' };
    const { metadata } = await client.create(clusterInventories, objectOf(clusterInventories, ref, {}));
    await until('Ready', async () => isReady(await client.get(clusterInventories, ref)), { timeoutMs: 60_000 });
    assert.ok(await client.get(secrets, { namespace, name: `kc-${metadata.uid}` }));
    await client.delete(clusterInventories, ref);
    await until('the end of the entry', () => isGone(client, ref), { timeoutMs: 60_000 });
    for (const resource of [roles, roleBindings, serviceAccounts, secrets]) {
      const { items } = await client.list(resource, { namespace });
      assert.deepEqual(
        items.map((item) => item.metadata.name).filter((name) => name.includes(metadata.uid ?? '?')),
        [],
      );
    }
    assert.deepEqual(deniedCalls(plane, serverUser, mark), [], await server.log());
  });

  it('signs the position of its audit journal', async () => {
    const heads = `/api/v1/namespaces/${home}/configmaps/${headNames.inventory.heads}`;
    const proven = async (): Promise<boolean> => {
      if ((await plane.probe(heads)).status === 404) return false;
      const file = join(plane.directory, `inventory-audit-${server.ports.webhooks}.jsonl`);
      const flags = ['--partial', `--kubeconfig=${plane.adminKubeconfig}`, '-o', 'json'];
      // Its exit code is 0 only once every line is proven.
      const said = await execFileAsync(process.execPath, [program, 'audit', 'verify', file, ...flags]).catch(
        () => undefined,
      );
      if (!said) return false;
      const { verdict, chains } = JSON.parse(said.stdout) as VerifyReport;
      const ours = chains.filter(({ last }) => last > 0);
      return verdict === 'intact' && ours.length > 0 && ours.every(({ unproven }) => unproven === 0);
    };
    await until('heads for every line', proven, { timeoutMs: 60_000, everyMs: 500 });
  });

  it('has exactly the permissions that it uses or grants', async () => {
    const held = serverRightsIn(rights);
    const used = new Set(plane.auditLog.calls({ user: serverUser, since: mark }).map(rightFor));
    assert.deepEqual(
      [...used].filter((right) => !held.includes(right)),
      [],
    );
    for (const file of Object.values(usedElsewhere)) assert.ok(existsSync(join(import.meta.dirname, file)), file);
    const unused = held.filter((right) => !used.has(right) && !(right in usedElsewhere));
    assert.deepEqual(unused, []);
  });

  const asText = (manifests: readonly Manifest[]): string =>
    manifests.map((manifest) => stringify(manifest)).join('---\n');

  function isReady({ status }: KubeObject): boolean {
    const conditions = own(status, 'conditions');
    return (
      Array.isArray(conditions) &&
      conditions.some((condition) => own(condition, 'type') === 'Ready' && own(condition, 'status') === 'True')
    );
  }

  async function isGone(client: Client, name: ObjectName): Promise<boolean> {
    try {
      await client.get(clusterInventories, name);
      return false;
    } catch (error) {
      if (isNotFound(error)) return true;
      throw error;
    }
  }
});
