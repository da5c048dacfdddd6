import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callApi } from '../../../sandbox/api-call.ts';
import type { RunResult } from '../../../sandbox/build/run.ts';
import { containersFolder } from '../../../sandbox/layout.ts';
import { issue, type Subject } from '../../../sandbox/pki.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { sharedPlane, testNamespace } from '../../support/plane.ts';

const soon = { timeoutMs: 30_000, everyMs: 20 };

/** kubectl with its output so far. */
class Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly exit: Promise<number | null>;
  output = '';

  constructor(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(program, args, { env });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.child.stdin.on('error', () => undefined);
    this.exit = once(this.child, 'close').then(([code]) => code as number | null);
  }

  type(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  shows(pattern: RegExp): Promise<RegExpExecArray> {
    return until(String(pattern), () => pattern.exec(this.output) ?? undefined, soon).catch((error: Error) => {
      throw new Error(`${error.message} in ${JSON.stringify(this.output)}`);
    });
  }
}

describe('the kubelet of the sandbox', () => {
  let plane: Plane;
  let namespace: string;
  const children: Running[] = [];

  before(async function () {
    this.timeout(180_000);
    plane = await sharedPlane();
    namespace = await testNamespace('kubelet');
    for (const name of ['shell', 'other']) await createPod(name);
    await plane.kubectl(['wait', '-n', namespace, '--for=condition=Ready', 'pod', '--all', '--timeout=30s']);
  });

  after(() => {
    for (const { child } of children) child.kill('SIGKILL');
  });

  async function createPod(name: string): Promise<void> {
    const main = { name: 'main', image: 'busybox', stdin: true };
    const containers = [main, { name: 'second', image: 'busybox' }];
    const pod = { metadata: { name }, spec: { containers } };
    assert.equal((await plane.call('POST', `/api/v1/namespaces/${namespace}/pods`, pod)).status, 201);
  }

  const kubectl = (args: readonly string[]): Promise<RunResult> =>
    plane.kubectl(['-n', namespace, ...args], { reject: false });
  const exec = (...command: string[]): Promise<RunResult> => kubectl(['exec', 'shell', '-c', 'main', '--', ...command]);

  function run(program: string, args: readonly string[]): Running {
    const env = { PATH: process.env['PATH'], HOME: plane.directory, KUBECONFIG: plane.adminKubeconfig };
    const running = new Running(program, args, env);
    children.push(running);
    return running;
  }

  const start = (...args: string[]): Running => run(plane.binaries.kubectl, ['-n', namespace, ...args]);

  /** Runs kubectl in a terminal, which `script` opens. */
  async function startInTerminal(...args: string[]): Promise<Running> {
    const command = `exec ${plane.binaries.kubectl} -n ${namespace} ${args.join(' ')}`;
    const kubectl = run('script', ['-qefc', command, '/dev/null']);
    await kubectl.shows(/\$ /);
    return kubectl;
  }

  describe('a command', () => {
    it('runs as the user that the plane names, in a folder of its container, and with no environment of this machine', async () => {
      const home = join(containersFolder(plane.directory), namespace, 'shell', 'main');
      const { stdout } = await exec('sh', '-c', 'id -un; pwd; env -u PWD');
      const [user, directory, ...env] = stdout.trim().split('\n');
      assert.deepEqual([user, directory], [plane.execUser, home]);
      assert.deepEqual(env.map((line) => line.split('=')[0]).sort(), ['HOME', 'HOSTNAME', 'PATH']);
      assert.ok(env.includes(`HOME=${home}`) && env.includes('HOSTNAME=shell'), stdout);
    });

    it('finds no files of other containers in its folder', async () => {
      await exec('touch', 'mine');
      for (const place of [
        ['shell', '-c', 'second'],
        ['other', '-c', 'main'],
      ]) {
        assert.equal((await kubectl(['exec', ...place, '--', 'ls'])).stdout, '', place.join(' '));
      }
    });
  });

  describe('a command whose client is killed', () => {
    it('continues without a terminal, and reads the end of its input', async () => {
      const client = start('exec', '-i', 'shell', '--', 'sh', '-c', 'echo "pid $$"; cat; touch ended; exec sleep 1000');
      const [, pid] = await client.shows(/^pid (\d+)$/m);
      client.child.kill('SIGKILL');
      await until('the end of input', async () => (await exec('ls', 'ended')).code === 0, soon);
      assert.ok(existsSync(`/proc/${pid}`));
      await exec('kill', '-KILL', pid ?? '');
    });

    it('continues in a terminal, which does not hang up, and its output is discarded', async () => {
      const client = await startInTerminal('exec', '-it', 'other', '-c', 'main', '--', 'sh');
      client.type('echo "p""id $$"; while sleep 0.05; do echo beat | tee -a beats; done');
      const [, pid] = await client.shows(/^pid (\d+)\r?$/m);
      await client.shows(/^beat/m);
      client.child.kill('SIGKILL');
      const ended = /"stage":"ResponseComplete".*pods\/other\/exec\?command=sh\b/;
      await until(
        'the end of the call',
        async () => ended.test(await readFile(join(plane.directory, 'audit.log'), 'utf8')),
        soon,
      );
      const beats = async (): Promise<number> =>
        Number((await kubectl(['exec', 'other', '-c', 'main', '--', 'sh', '-c', 'wc -l <beats'])).stdout);
      const before = await beats();
      await until('ten more beats', async () => (await beats()) > before + 10, soon);
      await exec('kill', '-KILL', pid ?? '');
    });
  });

  describe('its port', () => {
    const call = async (subject: Subject): Promise<number> => {
      const { body } = await plane.probe('/api/v1/nodes/sandbox-node');
      const { status } = body as { status: { daemonEndpoints: { kubeletEndpoint: { Port: number } } } };
      const server = `https://127.0.0.1:${status.daemonEndpoints.kubeletEndpoint.Port}`;
      const target = { server, authority: plane.authority.certificate, identity: issue(plane.authority, subject) };
      return (await callApi(target, 'GET', `/containerLogs/${namespace}/other/second`)).status;
    };

    it('answers the API server', async () => {
      assert.equal(await call({ commonName: 'kube-apiserver-kubelet-client' }), 200);
    });

    it('rejects an administrator', () =>
      assert.rejects(call({ commonName: 'sandbox-admin', groups: ['system:masters'] }), /alert|ECONNRESET|hang up/));
  });
});
