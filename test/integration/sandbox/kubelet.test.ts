import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callApi } from '../../../sandbox/api-call.ts';
import type { RunResult } from '../../../sandbox/build/run.ts';
import { containersFolder } from '../../../sandbox/layout.ts';
import { issue, type Subject } from '../../../sandbox/pki.ts';
import type { Plane } from '../../../sandbox/plane.ts';
import { portOf } from '../../../sandbox/ports.ts';
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
  let folder: string;
  const children: Running[] = [];

  before(async function () {
    this.timeout(180_000);
    plane = await sharedPlane();
    namespace = await testNamespace('kubelet');
    folder = await mkdtemp(join(tmpdir(), 'kubelet-test-'));
    for (const name of ['shell', 'other', 'main', 'terminal']) await createPod(name);
    await plane.kubectl(['wait', '-n', namespace, '--for=condition=Ready', 'pod', '--all', '--timeout=30s']);
  });

  after(async () => {
    for (const { child } of children) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  async function createPod(name: string): Promise<void> {
    const main = { name: 'main', image: 'busybox', stdin: true, tty: name === 'terminal' };
    const containers = [main, { name: 'second', image: 'busybox' }];
    const pod = { metadata: { name }, spec: { containers } };
    assert.equal((await plane.call('POST', `/api/v1/namespaces/${namespace}/pods`, pod)).status, 201);
  }

  const kubectl = (args: readonly string[], input?: string): Promise<RunResult> =>
    plane.kubectl(['-n', namespace, ...args], { reject: false, ...(input === undefined ? {} : { input }) });
  const exec = (...command: string[]): Promise<RunResult> => kubectl(['exec', 'shell', '-c', 'main', '--', ...command]);

  function run(program: string, args: readonly string[]): Running {
    const env = { PATH: process.env['PATH'], HOME: plane.directory, KUBECONFIG: plane.adminKubeconfig };
    const running = new Running(program, args, env);
    children.push(running);
    return running;
  }

  const start = (...args: string[]): Running => run(plane.binaries.kubectl, ['-n', namespace, ...args]);

  /** Runs kubectl in a terminal, which `script` opens; the first line of the output is its path. */
  async function startInTerminal(...args: string[]): Promise<{ readonly kubectl: Running; readonly tty: string }> {
    const command = `tty; stty cols 90 rows 30; exec ${plane.binaries.kubectl} -n ${namespace} ${args.join(' ')}`;
    const kubectl = run('script', ['-qefc', command, '/dev/null']);
    const [tty] = await kubectl.shows(/\/dev\/pts\/\d+(?=\r?\n)/);
    await kubectl.shows(/\$ /);
    return { kubectl, tty };
  }

  /** A command that waits for the size of the client, which kubectl sends beside its input. */
  const whenSized = (size: string, command: string): string =>
    `until [ "$(stty size)" = "${size}" ]; do sleep 0.05; done; ${command}`;

  describe('exit codes', () => {
    const cases: readonly [string, number][] = [
      ['true', 0],
      ['exit 3', 3],
      ['no-such-program', 127],
      ['kill -KILL $$', 137],
    ];
    for (const [script, expected] of cases) {
      it(`reports ${expected} for sh -c '${script}'`, async () => {
        const { code, stderr } = await exec('sh', '-c', script);
        assert.equal(code, expected, stderr);
        if (expected > 0) assert.match(stderr, new RegExp(`command terminated with exit code ${expected}\n$`));
      });
    }

    it('reports 1 and the name for a program that does not exist', async () => {
      const { code, stderr } = await exec('no-such-program');
      assert.equal(code, 1);
      assert.match(stderr, /"no-such-program": executable file not found in \$PATH/);
    });
  });

  describe('streams without a terminal', () => {
    it('separate stdout and stderr', async () => {
      const { stdout, stderr } = await exec('sh', '-c', 'echo out; echo err >&2; echo more >/dev/stdout');
      assert.deepEqual([stdout, stderr], ['out\nmore\n', 'err\n']);
    });

    it('deliver the end of stdin', async () => {
      const { code, stdout } = await kubectl(['exec', '-i', 'shell', '-c', 'main', '--', 'cat'], 'hi\n');
      assert.deepEqual([code, stdout], [0, 'hi\n']);
    });

    it('deliver the end of stdin to a command whose client sends none', async () => {
      assert.deepEqual(await exec('cat'), { code: 0, stdout: '', stderr: '' });
    });

    it('copy 10 MB into a container and back', async function () {
      this.timeout(60_000);
      const [up, down] = [join(folder, 'up'), join(folder, 'down')];
      const content = randomBytes(10 * 1024 * 1024);
      await writeFile(up, content);
      const sent = await kubectl(['cp', up, 'shell:copied']);
      assert.equal(sent.code, 0, sent.stderr);
      const hash = createHash('sha256').update(content).digest('hex');
      assert.equal((await exec('sha256sum', 'copied')).stdout, `${hash}  copied\n`);
      const received = await kubectl(['cp', 'shell:copied', down]);
      assert.equal(received.code, 0, received.stderr);
      assert.ok((await readFile(down)).equals(content));
    });
  });

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

  it('gives a command a terminal that echoes, has the size of the client, follows it, and reports the exit code', async () => {
    const { kubectl: shell, tty } = await startInTerminal('exec', '-it', 'shell', '--', 'sh');
    shell.type(whenSized('30 90', 'stty size; echo "sum $((20+22))"; echo both >/dev/stderr'));
    await shell.shows(/echo "sum \$\(\(20\+22\)\)".*\r\n30 90\r\nsum 42\r\nboth\r\n/);
    shell.type(whenSized('40 100', 'echo resi""zed'));
    await shell.shows(/resi""zed/);
    execFileSync('stty', ['-F', tty, 'cols', '100', 'rows', '40']);
    await shell.shows(/resized/);
    shell.type('exit 5');
    assert.equal(await shell.exit, 5);
    assert.match(shell.output, /command terminated with exit code 5/);
  });

  describe('the main process of a container', () => {
    it('prints a line, runs what attached clients type, and shows it to each of them and in its logs', async () => {
      const logs = start('logs', '--follow', 'main', '-c', 'main');
      await logs.shows(/^started\n/);
      const watching = start('attach', 'main', '-c', 'main');
      await watching.shows(/If you don't see a command prompt|All commands and output/);
      const first = start('attach', '-i', 'main', '-c', 'main');
      // Until both have attached: an attached client sees only what follows.
      await until(
        'both clients',
        () => {
          first.type('echo here');
          return [first, watching].every(({ output }) => /^here$/m.test(output));
        },
        soon,
      );
      for (const [script, shown] of [
        ['echo "sum $((20+22))"', /^sum 42$/m],
        ['echo err >&2', /^err$/m],
      ] as const) {
        first.type(script);
        for (const client of [first, watching, logs]) await client.shows(shown);
      }
      first.child.kill('SIGKILL');
      await first.exit;
      const { code } = await kubectl(['attach', '-i', 'main', '-c', 'main'], 'echo second; exit\n');
      assert.equal(code, 0);
      assert.deepEqual(await Promise.all([watching.exit, logs.exit]), [0, 0]);
      assert.match(logs.output, /^started\n(here\n)+sum 42\nerr\nsecond\n$/);
      assert.equal((await kubectl(['logs', 'main', '-c', 'main'])).stdout, logs.output);
    });

    it('has a terminal if the container has one', async () => {
      const { kubectl: shell } = await startInTerminal('attach', '-it', 'terminal', '-c', 'main');
      shell.type(whenSized('30 90', 'stty size; exit'));
      assert.equal(await shell.exit, 0);
      assert.match(shell.output, /\r\n30 90\r\n/);
    });

    it('rejects options of logs that it does not have', async () => {
      const { code, stderr } = await kubectl(['logs', '--tail=1', 'other', '-c', 'main']);
      assert.equal(code, 1);
      assert.match(stderr, /found options tailLines=1; allowed: follow/);
    });
  });

  describe('port-forward', () => {
    let server: Server;
    before(async () => {
      server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
      await once(server, 'listening');
    });
    after(() => server.close());

    it('moves 1 MB to a port of this machine and back', async () => {
      const forward = start('port-forward', 'shell', `:${portOf(server)}`);
      const [, port] = await forward.shows(/127\.0\.0\.1:(\d+) ->/);
      const content = randomBytes(1024 * 1024);
      const socket = connect(Number(port), '127.0.0.1');
      const chunks: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      socket.end(content);
      await once(socket, 'close');
      assert.ok(Buffer.concat(chunks).equals(content));
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
      const { kubectl: client } = await startInTerminal('exec', '-it', 'other', '-c', 'main', '--', 'sh');
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
