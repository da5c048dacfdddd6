import assert from 'node:assert/strict';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { stringify } from 'yaml';
import { readReconcileRequest } from '../../../examples/inventory/components/sdk/contract.ts';
import { InventoryServer } from '../../../sandbox/inventory-server.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { clusterInventories, componentReconcilers, reconcileRuns } from '../../../src/api/inventory/names.ts';
import { apiVersionOf, type KubeObject } from '../../../src/api/object.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { valueAt } from '../../../src/kit/json-pointer.ts';
import { fileCredentials } from '../../../src/kube/kubeconfig.ts';
import { type OpenCluster, openCluster } from '../../../src/kube/open-cluster.ts';
import {
  type ComponentSettings,
  closed,
  listening,
  type RunningComponent,
  startPython,
  startShell,
} from '../../support/inventory/components/processes.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const waiting = { timeoutMs: 60_000, everyMs: 50 };
const names = ['speaks-python', 'speaks-shell', 'dies-midway'];
const secretValue = 'top-secret-4711';

describe('components in any language, called by the server', function () {
  this.timeout(120_000);
  let plane: Plane;
  let server: InventoryServer;
  let cluster: OpenCluster;
  let namespace: string;
  let settings: (component: string) => ComponentSettings;
  const running: RunningComponent[] = [];
  const recorders: Server[] = [];
  /** Bodies of calls. */
  const bodies: string[] = [];

  before(async () => {
    plane = await sharedPlane();
    namespace = await testNamespace('languages');
    server = await InventoryServer.start(plane, { namespaces: [namespace] });
    cluster = openCluster(await fileCredentials(plane.adminKubeconfig), { clock: systemClock });
    const binding = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: `${namespace}-token-reviews` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:auth-delegator' },
      subjects: [{ kind: 'ServiceAccount', namespace, name: 'default' }],
    };
    await plane.kubectl(['apply', '-f', '-'], { input: stringify(binding) });
    const reviewToken = await plane.serviceAccountToken(namespace, 'default');
    settings = (component) => ({
      component,
      apiUrl: plane.server,
      apiCaFile: plane.caFile,
      callbackUrl: server.callbackUrl,
      serverAccount: `system:serviceaccount:${server.namespace}:drawbridge-inventory`,
      reviewToken,
    });
  });

  after(async () => {
    const all = ['delete', 'clusterinventories', '--all', '-n', namespace, '--timeout=60s'];
    await plane?.kubectl(all, { reject: false });
    await plane?.kubectl(['delete', 'componentreconcilers', '--ignore-not-found', ...names]);
    await plane?.kubectl(['delete', 'clusterrolebinding', '--ignore-not-found', `${namespace}-token-reviews`]);
    for (const one of running) await one.close();
    for (const one of recorders) await closed(one);
    await server?.stop();
    await server?.uninstall();
    await plane?.kubectl(['delete', 'namespace', namespace, '--wait=false']);
    await cluster?.close();
  });

  for (const [component, start] of [
    ['speaks-shell', startShell],
    ['speaks-python', startPython],
  ] as const) {
    it(`${component}: reads by URL and token, patches, publishes, runs asynchronously, is killed, and tears down`, async () => {
      const program = await start(settings(component));
      running.push(program);
      const target = { url: program.url };
      const url = await recorded(target);
      const entry = await registered(component, url, 'done');
      await seen(component, secretValue);
      for (const play of ['patch', 'goOn']) {
        const value = `${secretValue}-${play}`;
        const spec = { components: { [component]: { config: { play, value } } } };
        await cluster.client.mergePatch(clusterInventories, { namespace, name: component }, { spec });
        await seen(component, value);
      }
      await outcome(entry, component, 'Done');
      // The component is killed and replaced; no state is lost.
      await program.close();
      const value = `${secretValue}-after`;
      const spec = { components: { [component]: { config: { play: 'done', value } } } };
      await cluster.client.mergePatch(clusterInventories, { namespace, name: component }, { spec });
      const successor = await start(settings(component));
      running.push(successor);
      target.url = successor.url;
      await seen(component, value);
      await deleted(component);
    });
  }

  it('a run whose component dies after its 202 ends at its deadline and is retried', async () => {
    const component = 'dies-midway';
    const program = await startPython({ ...settings(component), heartbeatDelaySeconds: 600 });
    running.push(program);
    const target = { url: program.url };
    const entry = await registered(component, await recorded(target), 'goOn');
    const name = `${entry.metadata.name}.${component}`;
    const record = () => cluster.client.get(reconcileRuns, { namespace, name });
    const goesOn = async (): Promise<boolean> => {
      const { items } = await cluster.client.list(reconcileRuns, { namespace });
      const spec = items.find(({ metadata }) => metadata.name === name)?.spec;
      return valueAt(spec, '/phase') === 'Running' && valueAt(spec, '/asynchronous') === true;
    };
    await until('the run to go on', goesOn, waiting).catch(explain);
    await program.close();
    const isLost = async (): Promise<boolean> => JSON.stringify((await record()).spec).includes('LeaseOver');
    await until('the end of its lease', isLost, waiting).catch(explain);
    const successor = await startPython(settings(component));
    running.push(successor);
    target.url = successor.url;
    await outcome(entry, component, 'Done');
    await seen(component, secretValue);
    await deleted(component);
  });

  it('receive the URL of the entry, and none of its content', () => {
    assert.ok(bodies.length >= 8);
    for (const text of bodies) {
      assert.ok(!text.includes(secretValue), 'no configuration');
      assert.ok(!/kubeconfig|"spec"|"status"|"outputs"|"config"/.test(text), text.replace(/"token":"[^"]*"/, ''));
      const body: unknown = JSON.parse(text);
      readReconcileRequest(body);
      assert.deepEqual(Object.keys(body as object).sort(), [
        'auth',
        'callback',
        'component',
        'entry',
        'operation',
        'protocol',
        'run',
      ]);
      assert.deepEqual(Object.keys(valueAt(body, '/entry') as object).sort(), ['id', 'resourceVersion', 'url']);
    }
  });

  /** Registers a component and creates an entry only for it. */
  async function registered(component: string, url: string, play: string): Promise<KubeObject> {
    await cluster.client.create(componentReconcilers, {
      apiVersion: apiVersionOf(componentReconcilers),
      kind: componentReconcilers.kind,
      metadata: { name: component },
      spec: { endpoint: { url }, selector: { matchLabels: { speaks: component } }, timeoutSeconds: 15 },
    });
    return cluster.client.create(clusterInventories, {
      apiVersion: apiVersionOf(clusterInventories),
      kind: clusterInventories.kind,
      metadata: { name: component, namespace, labels: { speaks: component } },
      spec: { mode: 'managed', components: { [component]: { config: { play, value: secretValue } } } },
    });
  }

  async function deleted(name: string): Promise<void> {
    await cluster.client.delete(clusterInventories, { namespace, name });
    const gone = async (): Promise<boolean> => {
      const { items } = await cluster.client.list(clusterInventories, { namespace });
      return items.every(({ metadata }) => metadata.name !== name);
    };
    await until('the end of the entry', gone, waiting).catch(explain);
  }

  /** Records the requests to a component. */
  async function recorded(target: { readonly url: string }): Promise<string> {
    const recorder = createServer((incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', () => {
        const body = Buffer.concat(chunks);
        bodies.push(body.toString());
        const { method, headers } = incoming;
        const passed = httpRequest(`${target.url}${incoming.url}`, { method, headers, agent: false }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' });
          answer.pipe(outgoing);
        });
        passed.on('error', () => outgoing.destroy());
        passed.end(body);
      });
    });
    recorders.push(recorder);
    return listening(recorder);
  }

  async function seen(component: string, value: string): Promise<void> {
    const check = async (): Promise<boolean> => {
      const entry = await cluster.client.get(clusterInventories, { namespace, name: component });
      return valueAt(entry, `/status/outputs/${component}/seen`) === value;
    };
    await until(`${component} to publish ${value}`, check, waiting).catch(explain);
  }

  async function outcome(entry: KubeObject, component: string, wanted: string): Promise<void> {
    const name = `${entry.metadata.name}.${component}`;
    const check = async (): Promise<boolean> => {
      const { spec } = await cluster.client.get(reconcileRuns, { namespace, name });
      return valueAt(spec, '/phase') === 'Idle' && valueAt(spec, '/lastOutcome/outcome') === wanted;
    };
    await until(`${component} to be ${wanted}`, check, waiting).catch(explain);
  }

  async function explain(error: unknown): Promise<never> {
    const what = 'clusterinventories,reconcileruns,componentreconcilers';
    const { stdout } = await plane.kubectl(['get', what, '-n', namespace, '-o', 'yaml']);
    throw new Error(`${String(error)}\n${stdout}\n${await server.log()}`);
  }
});
