import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ScriptedRequest, Verdict } from '../../../sandbox/http-script.ts';
import { containersFolder } from '../../../sandbox/layout.ts';
import { attachPlane, type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

interface Pod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly startTime?: string;
    readonly conditions?: { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: {
      readonly name: string;
      readonly ready: boolean;
      readonly state: Record<string, { readonly reason?: string }>;
    }[];
  };
}

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

  const podsOf = async (app: string): Promise<Pod[]> => {
    const list = JSON.parse(await kubectl('get', 'pods', '--selector', `app=${app}`, '--output=json')) as {
      items: Pod[];
    };
    return list.items;
  };

  const createPod = async (
    name: string,
    annotations: Record<string, string> = {},
    spec: object = {},
  ): Promise<void> => {
    const { status, body } = await plane.call('POST', `/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name, annotations },
      spec: { containers: [{ name: 'main', image: 'busybox' }], ...spec },
    });
    assert.equal(status, 201, JSON.stringify(body));
  };

  const podThat = (name: string, condition: (pod: Pod) => boolean): Promise<Pod> =>
    until(
      `pod ${name}`,
      async () => {
        const pod = (await plane.probe(`/api/v1/namespaces/${namespace}/pods/${name}`)).body as Pod;
        return condition(pod) && pod;
      },
      { timeoutMs: 30_000, everyMs: 20 },
    );

  const isReady = ({ status }: Pod): boolean =>
    status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;

  describe('control plane', () => {
    it('is of the Kubernetes minor version that the project pins', async () => {
      const { body } = await plane.call('GET', '/version');
      assert.match((body as { gitVersion: string }).gitVersion, /^v1\.36\.\d+$/);
    });

    it('rolls out a Deployment of three and runs its Pods', async () => {
      await kubectl('create', 'deployment', 'web', '--image=nginx', '--replicas=3');
      await kubectl('rollout', 'status', 'deployment/web', '--timeout=50s');
      const pods = await podsOf('web');
      assert.equal(pods.length, 3);
      for (const pod of pods) {
        assert.ok(isReady(pod));
        assert.match(pod.status.podIP ?? '', /^10\.244\./);
        assert.ok(pod.status.startTime);
        assert.deepEqual(
          pod.status.containerStatuses?.map(({ name, ready }) => ({ name, ready })),
          [{ name: 'nginx', ready: true }],
        );
      }
    });

    it('deletes Pods without waiting for their grace period of 30 s', async () => {
      await createPod('leaving');
      await podThat('leaving', isReady);
      await kubectl('delete', 'pod', 'leaving', '--timeout=25s');
    });

    it('completes the Pods of a Job', async () => {
      await kubectl('create', 'job', 'once', '--image=busybox');
      await kubectl('wait', '--for=condition=Complete', 'job/once', '--timeout=50s');
    });
  });

  describe('Pods with a scripted lifecycle', () => {
    it('become Ready after the time in their annotation', async () => {
      const began = performance.now();
      await createPod('late', { 'sandbox/ready-after': '1500ms' });
      await podThat('late', isReady);
      assert.ok(performance.now() - began > 1400);
    });

    it('run without ever being Ready', async () => {
      await createPod('never', { 'sandbox/never-ready': 'true' });
      const pod = await podThat('never', ({ status }) => status.phase === 'Running');
      assert.ok(!isReady(pod));
    });

    it('wait for a reason', async () => {
      await createPod('waiting', { 'sandbox/waiting-reason': 'ImagePullBackOff' });
      const pod = await podThat('waiting', ({ status }) => status.containerStatuses !== undefined);
      assert.equal(pod.status.phase, 'Pending');
      assert.equal(pod.status.containerStatuses?.[0]?.state['waiting']?.reason, 'ImagePullBackOff');
    });

    it('crash and back off, or fail when they are not restarted', async () => {
      await createPod('crashing', { 'sandbox/crash': 'true' });
      await createPod('failing', { 'sandbox/crash': 'true' }, { restartPolicy: 'Never' });
      const crashing = await podThat('crashing', ({ status }) => status.containerStatuses !== undefined);
      assert.equal(crashing.status.containerStatuses?.[0]?.state['waiting']?.reason, 'CrashLoopBackOff');
      await podThat('failing', ({ status }) => status.phase === 'Failed');
    });
  });

  describe('users and programs', () => {
    it('have the identity of their kubeconfig', async () => {
      const kubeconfig = await plane.kubeconfigFor('alice@example.com', ['developers', 'on-call']);
      const { stdout } = await plane.kubectl(['auth', 'whoami', '--output=json'], { kubeconfig });
      const { userInfo } = (JSON.parse(stdout) as { status: { userInfo: { username: string; groups: string[] } } })
        .status;
      assert.equal(userInfo.username, 'alice@example.com');
      assert.deepEqual(userInfo.groups, ['developers', 'on-call', 'system:authenticated']);
    });

    it('have no permissions by default', async () => {
      const kubeconfig = await plane.kubeconfigFor('bob');
      const result = await plane.kubectl(['get', 'pods', '--namespace', namespace], { kubeconfig, reject: false });
      assert.equal(result.code, 1);
      assert.match(result.stderr, /User "bob" cannot list resource "pods"/);
    });

    it('get tokens for ServiceAccounts', async () => {
      const token = await plane.serviceAccountToken(namespace, 'default', 600);
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
      const { body } = await plane.call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
      const { status } = body as { status: { authenticated: boolean; user: { username: string } } };
      assert.deepEqual(
        [status.authenticated, status.user.username],
        [true, `system:serviceaccount:${namespace}:default`],
      );
    });

    it('run commands in Pods, on this machine as the user that the plane names', async () => {
      await createPod('shell');
      await podThat('shell', isReady);
      assert.equal(await kubectl('exec', 'shell', '--', 'echo', 'hi'), 'hi\n');
      assert.equal(await kubectl('exec', 'shell', '--', 'id', '--user', '--name'), `${plane.execUser}\n`);
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

    it('forwards everything by default', async () => {
      const proxy = await plane.proxy();
      assert.equal((await through(proxy.server, 'get', 'pods')).code, 0);
      await proxy.close();
    });

    it('delays', async () => {
      const proxy = await plane.proxy();
      proxy.latency(150);
      const began = performance.now();
      assert.equal((await through(proxy.server, 'get', '--raw', '/version')).code, 0);
      // TCP and TLS handshakes and the call: at least two round trips with data.
      assert.ok(performance.now() - began > 600);
      await proxy.close();
    });

    it('rejects and accepts connections again on the same port', async () => {
      const proxy = await plane.proxy();
      proxy.refuse();
      assert.match((await through(proxy.server, 'get', 'pods')).stderr, /refused/);
      await proxy.pass();
      assert.equal((await through(proxy.server, 'get', 'pods')).code, 0);
      await proxy.close();
    });

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

    it('keeps the identity of the caller while a script reads the calls', async () => {
      const seen: string[] = [];
      const onRequest = ({ path }: ScriptedRequest): Verdict => {
        seen.push(path);
        return 'pass';
      };
      const proxy = await plane.proxy({ onRequest });
      const kubeconfig = await plane.kubeconfigFor('carol', ['a', 'b'], { server: proxy.server });
      const { stdout } = await plane.kubectl(['auth', 'whoami', '--output=json'], { kubeconfig });
      const { userInfo } = (JSON.parse(stdout) as { status: { userInfo: { username: string; groups: string[] } } })
        .status;
      assert.deepEqual([userInfo.username, userInfo.groups], ['carol', ['a', 'b', 'system:authenticated']]);
      assert.ok(seen.some((path) => path.includes('selfsubjectreviews')));
      await proxy.close();
    });

    it('answers instead of the API server', async () => {
      const proxy = await plane.proxy({
        onRequest: ({ path }) =>
          path.includes('/pods')
            ? {
                status: 409,
                body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Conflict', message: 'scripted' },
              }
            : 'pass',
      });
      assert.match((await through(proxy.server, 'get', 'pods')).stderr, /scripted/);
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

    it('runs beside another plane, with separate data', async () => {
      assert.notEqual(own.server, plane.server);
      assert.equal((await own.call('GET', `/api/v1/namespaces/${namespace}`)).status, 404);
      assert.equal((await plane.call('GET', `/api/v1/namespaces/${namespace}`)).status, 200);
    });

    it('freezes its API server and continues', async () => {
      const apiserver = own.component('kube-apiserver');
      await apiserver.freeze();
      const call = own.call('GET', '/version');
      const first = await Promise.race([call, until('silence', silence(), { timeoutMs: 30_000 })]);
      assert.equal(first, 'silence');
      apiserver.resume();
      assert.equal((await call).status, 200);
    });

    it('restarts its API server after a crash, with its data', async () => {
      const { pid } = own.component('kube-apiserver');
      await own.call('POST', '/api/v1/namespaces', { metadata: { name: 'kept' } });
      await own.component('kube-apiserver').restart();
      assert.notEqual(own.component('kube-apiserver').pid, pid);
      assert.equal((await own.call('GET', '/api/v1/namespaces/kept')).status, 200);
    });

    it('restarts etcd after a crash, with its data', async () => {
      await own.component('etcd').restart();
      // `/readyz/etcd` may repeat its last result for a second.
      const isBack = async (): Promise<boolean> => (await own.call('GET', '/api/v1/namespaces/kept')).status === 200;
      await until('etcd to be back with its data', isBack, { timeoutMs: 30_000 });
    });

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

function silence(): () => 'silence' | undefined {
  const began = performance.now();
  return () => (performance.now() - began > 300 ? 'silence' : undefined);
}

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
