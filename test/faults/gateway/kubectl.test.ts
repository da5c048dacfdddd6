import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { stringify } from 'yaml';
import type { RunResult } from '../../../sandbox/build/run.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { portOf } from '../../../sandbox/ports.ts';
import { Terminal } from '../../../sandbox/terminal.ts';
import { AccessGateway } from '../../support/access-gateway.ts';
import { execRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';

const MB = 1_000_000;

describe('kubectl in a context of `drawbridge use`', () => {
  const token = randomBytes(16).toString('hex');
  let plane: Plane | undefined;
  let stage: AccessStage;
  let gateway: AccessGateway;
  let client: Client;
  let folder: string;
  let echo: Server;
  const terminals: Terminal[] = [];

  before(async function () {
    this.timeout(180_000);
    folder = await mkdtemp(join(tmpdir(), 'gateway-kubectl-'));
    echo = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    const tokens = join(folder, 'tokens.csv');
    await writeFile(tokens, `${token},dora,dora,devs\n`, { mode: 0o600 });
    plane = await startPlane({ apiserverFlags: [`--token-auth-file=${tokens}`] });
    const rules = [
      { apiGroups: [''], resources: ['pods/attach', 'pods/portforward'], verbs: ['get', 'create'] },
      { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] },
    ];
    const grantable = join(folder, 'grantable.json');
    await writeFile(grantable, JSON.stringify(rules));
    stage = await AccessStage.open({ on: plane, flags: [`--grantable=${grantable}`] });
    gateway = await AccessGateway.open(stage);
    client = new Client(stage);
    const labels = { app: 'console' };
    await stage.apply(
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'console' },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'main', image: 'example.org/console', stdin: true }] },
          },
        },
      },
      {
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'ExecAccessTemplate',
        metadata: { name: 'console' },
        spec: {
          accessConfig: {
            allowedGroups: ['devs'],
            session: { via: 'Gateway' },
            rules,
          },
          controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'console' },
        },
      },
    );
    await stage.kubectl('wait', '--for=condition=Available', 'deployment/console', '--timeout=30s');
    await stage.templateReady('ExecAccessTemplate', 'console');
  });
  after(async () => {
    for (const terminal of terminals) terminal.kill();
    echo?.close();
    await gateway?.close();
    await stage?.close();
    await plane?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  async function tokenKubeconfig(): Promise<string> {
    const { plane, namespace } = stage;
    const authority = Buffer.from(plane.authority.certificate).toString('base64');
    const content = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: plane.server, 'certificate-authority-data': authority } }],
      users: [{ name: 'dora', user: { token } }],
      contexts: [{ name: 'dora', context: { cluster: 'c', user: 'dora', namespace } }],
      'current-context': 'dora',
    };
    const path = join(folder, 'token.yaml');
    await writeFile(path, stringify(content), { mode: 0o600 });
    return path;
  }

  for (const [credential, kubeconfigOf] of [
    ['certificate', async () => stage.alice.kubeconfig],
    ['token', tokenKubeconfig],
  ] as const) {
    describe(`with a ${credential}`, () => {
      let pod: string;
      let env: NodeJS.ProcessEnv & { KUBECONFIG: string };

      before(async () => {
        const own = await kubeconfigOf();
        const name = `by-${credential}`;
        const input = stringify(execRequest(name, { templateName: 'console', duration: '10m' }));
        await stage.plane.kubectl(['create', '-n', stage.namespace, '-f', '-'], { kubeconfig: own, input });
        const request = await stage.ready({ kind: 'ExecAccessRequest', metadata: { name, uid: '' } });
        pod = request.status?.podName ?? '';
        const { stdout, stderr } = await client.run({ kubeconfig: own, home: folder }, 'use', name);
        const kubeconfig = /^export KUBECONFIG=(.*)\n$/.exec(stdout)?.[1];
        assert.ok(kubeconfig, stderr);
        env = { PATH: process.env['PATH'], HOME: folder, TERM: 'xterm', KUBECONFIG: kubeconfig };
      });

      const kubectl = (args: readonly string[], input?: string): Promise<RunResult> =>
        stage.plane.kubectl(args, {
          kubeconfig: env.KUBECONFIG,
          reject: false,
          ...(input === undefined ? {} : { input }),
        });
      /** kubectl in a terminal of 90 columns and 30 rows, which shows its path first. */
      function start(...args: string[]): Terminal {
        const command = 'tty; stty cols 90 rows 30; exec "$@"';
        const terminal = new Terminal('sh', ['-c', command, 'sh', stage.plane.binaries.kubectl, ...args], env);
        terminals.push(terminal);
        return terminal;
      }

      for (const [script, expected] of [
        ['exit 0', 0],
        ['exit 3', 3],
        ['no-such-program', 127],
        ['kill -KILL $$', 137],
      ] as const) {
        it(`reports the exit code ${expected} of sh -c '${script}'`, async () => {
          const { code, stdout, stderr } = await kubectl(['exec', pod, '--', 'sh', '-c', `echo out; ${script}`]);
          assert.deepEqual([stdout, code], ['out\n', expected], stderr);
        });
      }

      it('passes the input of a command and its end', async () => {
        const { code, stdout } = await kubectl(['exec', '-i', pod, '--', 'wc', '-c'], 'x'.repeat(MB));
        assert.deepEqual([stdout.trim(), code], [String(MB), 0]);
      });

      it('opens a terminal that echoes, has the size of the client, and follows it', async () => {
        const shell = start('exec', '-ti', pod, '--', 'sh');
        const [, tty = ''] = /(\/dev\/pts\/\d+)\r\n/.exec(await shell.shows(/\/dev\/pts\/\d+\r\n/)) ?? [];
        await shell.shows(/\$ $/);
        shell.write('until [ "$(stty size)" = "30 90" ]; do sleep 0.05; done; echo "sum $((20+22))"\n');
        await shell.shows(/\r\nsum 42\r\n/);
        shell.write('until [ "$(stty size)" = "40 100" ]; do sleep 0.05; done; echo resi""zed\n');
        await shell.shows(/resi""zed/);
        execFileSync('stty', ['-F', tty, 'cols', '100', 'rows', '40']);
        await shell.shows(/resized/);
        shell.write('exit 5\n');
        assert.equal(await shell.exit(), 5);
      });

      it('copies 20 MB into the pod and back, with equal SHA-256', async function () {
        this.timeout(180_000);
        const [up, down] = [join(folder, 'up'), join(folder, 'down')];
        const content = randomBytes(20 * MB);
        await writeFile(up, content);
        const hash = createHash('sha256').update(content).digest('hex');
        const sent = await kubectl(['cp', up, `${pod}:copied`]);
        assert.equal(sent.code, 0, sent.stderr);
        assert.equal((await kubectl(['exec', pod, '--', 'sha256sum', 'copied'])).stdout, `${hash}  copied\n`);
        const received = await kubectl(['cp', `${pod}:copied`, down]);
        assert.equal(received.code, 0, received.stderr);
        const copied = createHash('sha256');
        await pipeline(createReadStream(down), copied);
        assert.equal(copied.digest('hex'), hash);
      });

      it('attaches to the main process, and follows its log', async () => {
        const logs = start('logs', '-f', pod);
        await logs.shows(/started/);
        const attached = start('attach', '-i', pod);
        await attached.shows(/If you don't see a command prompt|All commands and output/);
        attached.write(`echo "${credential} $((20+22))"\n`);
        const line = new RegExp(`^${credential} 42`, 'm');
        await attached.shows(line);
        await logs.shows(line);
        for (const terminal of [attached, logs]) terminal.kill();
      });

      it('passes the time limit of every command, and the API server checks that of reads', async () => {
        const local = join(folder, 'limited');
        await writeFile(local, 'content');
        const limited = (...args: string[]) => kubectl(['--request-timeout=30s', ...args]);
        for (const args of [
          ['get', 'pods'],
          ['get', 'pod', pod, '-o', 'yaml'],
          ['logs', pod],
          ['exec', pod, '--', 'true'],
          ['cp', local, `${pod}:limited`],
          ['api-resources'],
          ['version'],
        ]) {
          const { code, stderr } = await limited(...args);
          assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
        }
        const attached = start('--request-timeout=30s', 'attach', '-i', pod);
        await attached.shows(/If you don't see a command prompt|All commands and output/);
        attached.kill();
        const forward = start('--request-timeout=30s', 'port-forward', `pod/${pod}`, `:${portOf(echo)}`);
        await forward.shows(/Forwarding from 127\.0\.0\.1:(\d+)/);
        forward.kill();
        const path = `/api/v1/namespaces/${stage.namespace}/pods`;
        const wrong = await kubectl(['get', '--raw', `${path}?timeout=soon`]);
        assert.match(wrong.stderr, /BadRequest.*invalid timeout specified in the request URL/);
      });

      it('forwards a port, with 5 MB in both directions at once over each of three connections', async function () {
        this.timeout(60_000);
        const forward = start('port-forward', `pod/${pod}`, `:${portOf(echo)}`);
        const shown = await forward.shows(/Forwarding from 127\.0\.0\.1:(\d+)/);
        const port = Number(/127\.0\.0\.1:(\d+)/.exec(shown)?.[1]);
        const content = randomBytes(5 * MB);
        const move = async (): Promise<void> => {
          const socket = connect(port, '127.0.0.1');
          await once(socket, 'connect');
          socket.end(content);
          const answer = await buffer(socket);
          assert.ok(answer.equals(content), `${answer.length} bytes`);
        };
        await Promise.all([move(), move(), move()]);
        forward.kill();
      });
    });
  }
});
