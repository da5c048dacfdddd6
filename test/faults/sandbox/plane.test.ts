import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { containersFolder } from '../../../sandbox/layout.ts';
import { attachPlane, type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

describe('sandbox', () => {
  let plane: Plane;
  let namespace: string;

  before(async function () {
    this.timeout(180_000);
    plane = await sharedPlane();
    namespace = await testNamespace('sandbox');
  });

  const kubectl = async (...args: string[]): Promise<string> =>
    (await plane.kubectl(['--namespace', namespace, ...args])).stdout;

  describe('control plane', () => {
    it('is of the Kubernetes minor version that the project pins', async () => {
      const { body } = await plane.call('GET', '/version');
      assert.match((body as { gitVersion: string }).gitVersion, /^v1\.36\.\d+$/);
    });
  });

  describe('audit log', () => {
    it('records every call of a user by the time of its answer', async () => {
      const kubeconfig = await plane.kubeconfigFor('counted');
      const since = plane.auditLog.mark();
      for (let call = 1; call <= 3; call += 1) {
        await plane.kubectl(['get', '--raw', '/api/v1/nodes'], { kubeconfig, reject: false });
        assert.equal(plane.auditLog.calls({ user: 'counted', since }).length, call);
      }
      assert.deepEqual(plane.auditLog.counts({ user: 'counted', since }), [
        { user: 'counted', verb: 'list', resource: 'nodes', count: 3 },
      ]);
      assert.equal(plane.auditLog.calls({ user: 'counted', since })[0]?.code, 403);
    });

    it('omits the control plane itself', () => {
      const users = new Set(plane.auditLog.calls().map(({ user }) => user));
      const own = [...users].filter((user) =>
        /^system:(kube-|apiserver|serviceaccount:kube-system)|^sandbox:/.test(user),
      );
      assert.deepEqual(own, []);
    });
  });

  describe('fault proxy', () => {
    const through = async (server: string, ...args: string[]) => {
      const kubeconfig = await plane.kubeconfigFor('through-proxy', ['system:masters'], { server });
      return plane.kubectl(['--namespace', namespace, ...args], { kubeconfig, reject: false });
    };

    it('stays silent without closing, and resets open connections', async () => {
      const proxy = await plane.proxy();
      proxy.stall();
      const call = through(proxy.server, 'get', '--raw', '/version', '--request-timeout=2s');
      await until('the connection', () => proxy.connections > 0, { timeoutMs: 30_000 });
      assert.notEqual((await call).code, 0);
      proxy.resetAll();
      await until('no connection', () => proxy.connections === 0, { timeoutMs: 30_000 });
      const cut = through(proxy.server, 'get', '--raw', '/version');
      await until('the connection', () => proxy.connections > 0, { timeoutMs: 30_000 });
      // kubectl tries again after a reset.
      proxy.refuse();
      proxy.resetAll();
      assert.match((await cut).stderr, /reset by peer/);
      await proxy.close();
    });

    it('loses the answer to an executed call', async () => {
      const proxy = await plane.proxy({ onRequest: ({ method }) => (method === 'POST' ? 'cut-answer' : 'pass') });
      const result = await through(proxy.server, 'create', 'configmap', 'unheard');
      assert.notEqual(result.code, 0);
      assert.equal(await kubectl('get', 'configmap', 'unheard', '--output=name'), 'configmap/unheard\n');
      await proxy.close();
    });

    it('hides and duplicates the lines of a watch', async () => {
      for (const name of ['hidden', 'doubled', 'plain']) await kubectl('create', 'configmap', name);
      const proxy = await plane.proxy({
        onWatchLine: (line) => (line.includes('"hidden"') ? [] : line.includes('"doubled"') ? [line, line] : [line]),
      });
      const path = `/api/v1/namespaces/${namespace}/configmaps?watch=1&timeoutSeconds=5`;
      const kubeconfig = await plane.kubeconfigFor('watcher', ['system:masters'], { server: proxy.server });
      const { stdout } = await plane.kubectl(['get', '--raw', path], { kubeconfig });
      const names = stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name);
      const count = (name: string): number => names.filter((one) => one === name).length;
      assert.deepEqual([count('hidden'), count('doubled'), count('plain')], [0, 2, 1]);
      await proxy.close();
    });
  });

  describe('attached plane', () => {
    it('is the same plane, without its processes', async () => {
      const attached = await attachPlane(plane.directory);
      const result = await attached.kubectl(['get', 'namespace', namespace, '--output=name']);
      assert.equal(result.stdout, `namespace/${namespace}\n`);
      assert.throws(() => attached.component('etcd'), /must start its own/);
      await attached.stop();
      assert.ok(existsSync(plane.directory));
    });

    it('says how to start one if there is none', () =>
      assert.rejects(attachPlane('/nonexistent'), /no running plane in \/nonexistent: start one with `make sandbox`/));
  });

  describe('plane of its own', () => {
    let own: Plane;
    before(async () => {
      own = await startPlane({ components: [] });
    });
    after(() => own.stop());

    it('leaves nothing behind when it stops', async () => {
      const pids = [own.component('etcd').pid, own.component('kube-apiserver').pid];
      await own.stop();
      assert.deepEqual(pids.filter(exists), []);
      assert.ok(!existsSync(own.directory) && !existsSync(containersFolder(own.directory)));
    });
  });

  it('ends with its parent, even when that is killed', async () => {
    const parent = spawn(
      process.execPath,
      ['--import', 'tsx', fileURLToPath(new URL('../../support/lone-plane.ts', import.meta.url))],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const { directory, pids } = JSON.parse(await firstLine(parent)) as { directory: string; pids: number[] };
    assert.ok(pids.every(exists) && existsSync(directory));
    parent.kill('SIGKILL');
    await until('its children to end', () => !pids.some(exists), { timeoutMs: 30_000 });
    await until('its folders to go', () => !existsSync(directory) && !existsSync(containersFolder(directory)), {
      timeoutMs: 30_000,
    });
  });
});

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the child has no output');
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return chunk.toString('utf8').split('\n')[0] ?? '';
}
