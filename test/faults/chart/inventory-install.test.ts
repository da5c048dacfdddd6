import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chart } from '../../../sandbox/chart/helm.ts';
import { issue } from '../../../sandbox/pki.ts';
import { freePorts } from '../../../sandbox/ports.ts';
import { type Launch, ProgramProcess } from '../../../sandbox/program-process.ts';
import { until } from '../../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { clusterInventories } from '../../../src/api/inventory/names.ts';
import { clock } from '../../../src/features/feature.ts';
import { staticCredentials } from '../../../src/kube/credentials.ts';
import { openCluster } from '../../../src/kube/open-cluster.ts';
import { accessUrl, execRequest } from '../../support/access-requests.ts';
import { deniedCalls } from '../../support/chart-manifests.ts';
import { ChartStage } from '../../support/chart-stage.ts';
import { ScriptedComponent } from '../../support/inventory/scripted-component.ts';

const group = '/apis/inventory.drawbridge.dev/v1alpha1';
const fleet = 'fleet';
const entries = `${group}/namespaces/${fleet}/clusterinventories`;
const registrations = `${group}/componentreconcilers`;
const patience = { timeoutMs: 60_000 };

interface StoredEntry {
  readonly metadata: { readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly kubeconfigSetBy?: { readonly username: string } };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly outputs?: Readonly<Record<string, unknown>>;
  };
}

class SeveralFeatures extends ProgramProcess {
  constructor(launch: Launch) {
    super(launch);
  }
}

describe('the chart with inventory, installed by Helm', function () {
  this.timeout(240_000);
  let stage: ChartStage;
  let network: ScriptedComponent;
  /** The API server's answer to a component that wrote outside its paths. */
  let outside: string | undefined;
  let values: object;

  before(async () => {
    stage = await ChartStage.open();
    await stage.plane.kubectl(['create', 'namespace', fleet]);
    network = await ScriptedComponent.start(async (request) => {
      outside ??= await asComponent(request, { dns: { zone: 'taken' } });
      const refusal = await asComponent(request, { network: { vnetName: 'v-1' } });
      return refusal === '' ? { outcome: 'Done' } : { outcome: 'Retry', message: refusal };
    });
    values = {
      inventory: { namespaces: [fleet], apiUrl: stage.plane.server },
      extraArgs: ['--allow-loopback-http=true'],
    };
  });
  after(async () => {
    network?.close();
    await stage?.close();
  });

  it('becomes ready alone, with two replicas', async () => {
    await helm('install', { access: false, inventory: true });
    await stage.kubelet.switchService('drawbridge-inventory-webhook');
    await stage.rolledOut();
    assert.equal(stage.kubelet.pods.filter(({ endpoint }) => endpoint).length, 2);
    await stage.kubelet.leader('drawbridge-inventory');
  });

  it('serves webhooks for registrations and entries', async () => {
    const admitted = await post(registrations, registration('network', network.url));
    assert.equal(admitted.status, 201, JSON.stringify(admitted.body));
    const twice = await post(
      registrations,
      registration('other', network.url, { writes: ['/status/outputs/network'] }),
    );
    assert.equal(twice.status, 422, JSON.stringify(twice.body));
    assert.match(JSON.stringify(twice.body), /PathTaken/);

    const byoc = { mode: 'byoc', kubeconfigSecretRef: { name: 'legacy-admin', key: 'config' } };
    const { status, body } = await post(`${entries}?dryRun=All`, entry('legacy', byoc));
    assert.equal(status, 201, JSON.stringify(body));
    assert.equal((body as StoredEntry).spec.kubeconfigSetBy?.username, 'sandbox-admin');

    const large = await post(entries, entry('large', { cluster: { notes: 'x'.repeat(70_000) } }));
    assert.notEqual(large.status, 201);
    assert.match(JSON.stringify(large.body), /65536|64 KiB/);
  });

  it('runs a component with the permissions of its own ServiceAccount, until the entry is Ready', async () => {
    assert.equal((await post(entries, entry('rt-1', { cluster: { region: 'west' } }))).status, 201);
    await ready('rt-1');
    assert.deepEqual((await get('rt-1'))?.status?.outputs, { network: { vnetName: 'v-1' } });
    assert.match(outside ?? '', /^ApiError: 403: .*ForeignPath: .*dns/);
    assert.deepEqual(forbidden(), []);
  });

  it('tears down a deleted entry completely', async () => {
    assert.equal((await post(entries, entry('rt-2', { cluster: { region: 'north' } }))).status, 201);
    await ready('rt-2');
    const uid = (await get('rt-2'))?.metadata.uid ?? '?';
    await stage.plane.call('DELETE', `${entries}/rt-2`);
    await gone('rt-2');
    assert.ok(network.callsFor(uid).some(({ request }) => request.operation === 'delete'));
    const kinds = 'serviceaccounts,roles,rolebindings,secrets,reconcileruns.inventory.drawbridge.dev';
    await until('all that was made for it to be gone', async () => !(await named(kinds)).includes(uid), patience);
    assert.deepEqual(forbidden(), []);
  });

  it('keeps its state and continues when access and binding are added', async () => {
    const before = await get('rt-1');
    const uid = before?.metadata.uid ?? '?';
    const calls = network.callsFor(uid).length;
    const old = stage.kubelet.pods.map(({ name }) => name);
    await helm('upgrade', { access: true, binding: true, inventory: true });
    await stage.rolledOut();
    const running = stage.kubelet.pods.map(({ name }) => name);
    assert.deepEqual(
      old.filter((name) => !running.includes(name)),
      [],
      'the replicas of the inventory were replaced',
    );
    assert.equal(running.length, 6);
    await stage.kubelet.leader('drawbridge-inventory');
    await stage.kubelet.leader('drawbridge-access');

    assert.equal((await post(entries, entry('rt-3', {}))).status, 201);
    await ready('rt-3');
    // The leader has reconciled every entry by now; unchanged entries are not run again.
    assert.equal(network.callsFor(uid).length, calls);
    assert.deepEqual((await get('rt-1'))?.status?.outputs, before?.status?.outputs);
    await patch('rt-1', { spec: { cluster: { region: 'east' } } });
    await until('a run for the change', () => network.callsFor(uid).length > calls, patience);
    await ready('rt-1');
    assert.deepEqual(forbidden(), []);
  });

  it('can run in one process with the other features, which is then ready for all of them', async () => {
    const { plane, namespace } = stage;
    const [port = 0, healthPort = 0, metricsPort = 0, callbackPort = 0] = await freePorts(4);
    const { certificate, key } = issue(plane.authority, { commonName: 'webhooks', serves: ['localhost'] });
    const [certFile, keyFile] = [join(plane.directory, 'several.crt'), join(plane.directory, 'several.key')];
    await writeFile(certFile, certificate);
    await writeFile(keyFile, key);
    const several = new SeveralFeatures({
      name: 'several-features',
      directory: plane.directory,
      flags: [
        '--features=access,binding,inventory',
        `--kubeconfig=${plane.adminKubeconfig}`,
        `--lease-namespace=${namespace}`,
        '--binding-lease-namespace=kube-bind',
        '--bind-address=127.0.0.1',
        ...[`--port=${port}`, `--callback-port=${callbackPort}`],
        ...[`--health-port=${healthPort}`, `--metrics-port=${metricsPort}`],
        ...[`--cert-file=${certFile}`, `--key-file=${keyFile}`],
        `--audit-log=${join(plane.directory, 'several.jsonl')}`,
      ],
      healthPort,
      metricsPort,
    });
    try {
      await several.whenReady();
      const checks = await (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).text();
      for (const check of ['stores', 'installation', 'audit-keys', 'binding-stores', 'inventory-stores']) {
        assert.match(checks, new RegExp(`\\b${check}\\b`), checks);
      }
    } finally {
      assert.equal(await several.stop(), 0);
    }
  });

  it('rejects an upgrade that removes it while entries exist, because no webhook would restrict their components', async () => {
    const without = helm('upgrade', { access: true, binding: true, inventory: false });
    await assert.rejects(without, /features\.inventory: this release has it enabled, and entries exist/);
  });

  it('leaves CRDs and entries when it is uninstalled, and nothing that blocks changes to them', async () => {
    const before = (await get('rt-1'))?.metadata.uid;
    const said = await stage.uninstall();
    assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
    await until('the replicas to end', () => stage.kubelet.pods.length === 0, patience);
    for (const kind of ['mutating', 'validating']) {
      const url = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
      assert.deepEqual(((await stage.plane.probe(url)).body as { items: unknown[] }).items, []);
    }
    const found = await get('rt-1');
    assert.equal(found?.metadata.uid, before);
    assert.equal(found?.metadata.deletionTimestamp, undefined);
    await patch('rt-1', { spec: { cluster: { region: 'south' } } });
    assert.equal((await post(registrations, registration('later', network.url))).status, 201);
    const request = execRequest('late');
    const asked = await stage.plane.call('POST', accessUrl(request.kind, stage.payments), request);
    assert.equal(asked.status, 201, JSON.stringify(asked.body));
  });

  it('reconciles changes from before a reinstallation', async () => {
    const uid = (await get('rt-1'))?.metadata.uid ?? '?';
    const calls = network.callsFor(uid).length;
    await helm('install', { access: false, inventory: true });
    await stage.kubelet.switchService('drawbridge-inventory-webhook');
    await stage.rolledOut();
    await until('a run for the change', () => network.callsFor(uid).length > calls, patience);
    for (const name of ['rt-1', 'rt-3']) {
      await stage.plane.call('DELETE', `${entries}/${name}`);
      await gone(name);
    }
  });

  const helm = (command: 'install' | 'upgrade', features: object): Promise<void> =>
    stage.helmWithValues([command, 'drawbridge', chart], 'own', {
      ...values,
      features,
      binding: { bindable: ['widgets.acme.example'] },
    });

  const post = (url: string, body: unknown) => stage.plane.call('POST', url, body);

  const patch = async (name: string, change: unknown): Promise<void> => {
    const { status, body } = await stage.plane.call('PATCH', `${entries}/${name}`, change);
    assert.equal(status, 200, JSON.stringify(body));
  };

  const get = async (name: string): Promise<StoredEntry | undefined> => {
    const { status, body } = await stage.plane.probe(`${entries}/${name}`);
    return status === 200 ? (body as StoredEntry) : undefined;
  };

  /** With `region`, a change of the region triggers a run. */
  const registration = (name: string, url: string, spec: object = {}): object => ({
    apiVersion: 'inventory.drawbridge.dev/v1alpha1',
    kind: 'ComponentReconciler',
    metadata: { name },
    spec: { endpoint: { url }, reads: ['/spec/cluster/region'], ...spec },
  });

  const entry = (name: string, spec: object): object => ({
    apiVersion: 'inventory.drawbridge.dev/v1alpha1',
    kind: 'ClusterInventory',
    metadata: { namespace: fleet, name },
    spec,
  });

  /** Writes as a component with the token of its run. Resolves to '' or the denial. */
  const asComponent = async (
    { entry: { url }, auth: { token } }: ReconcileRequest,
    outputs: object,
  ): Promise<string> => {
    const { server, authority } = stage.plane;
    const cluster = openCluster(staticCredentials({ server, token, tls: { ca: authority.certificate } }), { clock });
    const name = new URL(url).pathname.split('/').at(-1) ?? '';
    try {
      const patch = { status: { outputs } };
      await cluster.client.mergePatch(clusterInventories, { namespace: fleet, name }, patch, { subresource: 'status' });
      return '';
    } catch (error) {
      return `${error}`;
    } finally {
      await cluster.close();
    }
  };

  const ready = (name: string): Promise<unknown> =>
    eventually(`${name} to be Ready`, async () => {
      const { status } = (await get(name)) ?? {};
      return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
    });

  const gone = (name: string): Promise<unknown> =>
    eventually(`${name} to be gone`, async () => (await get(name)) === undefined);

  const eventually = async (what: string, condition: () => Promise<boolean>): Promise<void> => {
    try {
      await until(what, condition, patience);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await stage.kubelet.logs()}`);
    }
  };

  const named = async (kinds: string): Promise<string> =>
    (await stage.plane.kubectl(['get', kinds, '-n', fleet, '-o', 'name'])).stdout;

  const forbidden = (): string[] => deniedCalls(stage.plane, stage.inventoryUser);
});
