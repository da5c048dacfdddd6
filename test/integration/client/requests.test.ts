import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { until } from '../../../sandbox/wait.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client, type RunningClient } from '../../support/client.ts';

describe('a person who uses drawbridge to get access', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  const patchTemplate = async (accessConfig: object, kind = 'PodAccessTemplate'): Promise<void> => {
    const name = kind === 'PodAccessTemplate' ? 'payments-shell' : 'payments-exec';
    const patch = JSON.stringify({ spec: { accessConfig } });
    await stage.kubectl('patch', kind, name, '--type=merge', '-p', patch);
    await stage.templateObserved(kind, name);
  };
  const says = (running: RunningClient, text: RegExp): Promise<boolean> =>
    until(`the client to say ${text}`, () => text.test(running.soFar().stderr), { timeoutMs: 30_000 });
  /** A kubeconfig of alice with other fields of its cluster. */
  const changed = async (name: string, fields: object): Promise<{ kubeconfig: string }> => {
    const config = parse(await readFile(stage.alice.kubeconfig, 'utf8'));
    Object.assign(config.clusters[0].cluster, fields);
    const kubeconfig = join(stage.plane.directory, 'kubeconfigs', `${name}.yaml`);
    await writeFile(kubeconfig, stringify(config));
    return { kubeconfig };
  };
  const fields = (line: string | undefined): string[] => (line ?? '').trim().split(/ {2,}/);

  it('gets a command that works, and why that of the template is missing, once access is open', async () => {
    const patch = (accessCommand: string | null): Promise<void> =>
      patchTemplate({ accessCommand }, 'ExecAccessTemplate');
    await patch(
      'kubectl exec -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -c {{ index .Metadata.Labels "app2" }} -- sh',
    );
    try {
      const ask = ['request', 'exec', 'payments-exec', '--name', 'no-command', '--timeout', '30s'];
      const { code, stdout, stderr } = await client.run(stage.alice, ...ask);
      assert.equal(code, 0, stderr);
      assert.match(
        stderr,
        /^access is open until .*\nnote: InvalidAccessCommand: .*"app2", which pod \S+ does not have; add the label to the Pod template of Deployment payments, or remove the placeholder\. Ask the author of the template to correct it$/m,
      );
      const [program = '', ...args] = stdout.trim().split(' ');
      assert.equal(program, 'kubectl');
      const hello = await stage.alice.kubectl([...args.filter((arg) => arg !== '-ti'), '-c', 'echo hello']);
      assert.equal(hello.stdout.trim(), 'hello');
      assert.equal(await client.ok(stage.alice, 'watch', 'no-command'), stdout);
      assert.equal(await client.ok(stage.alice, 'exec', 'no-command', '--', 'echo', 'again'), 'again\n');
      assert.match(await client.ok(stage.alice, 'list'), /^no-command +exec +payments-exec +Open /m);
      await client.ok(stage.alice, 'revoke', 'no-command');
    } finally {
      await patch(null);
    }
  });

  for (const command of ['exec', 'watch', 'request'] as const) {
    it(`is told within five seconds by ${command} that the pod died before it was ready`, async () => {
      await stage.apply({
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'PodAccessTemplate',
        metadata: { name: 'dying' },
        spec: {
          accessConfig: { allowedGroups: ['devs'] },
          controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
          controllerTargetMutationConfig: { podAnnotations: { 'sandbox/waiting-reason': 'CreateContainerError' } },
        },
      });
      await stage.templateReady('PodAccessTemplate', 'dying');
      const name = `dies-${command}`;
      const ask = ['request', 'pod', 'dying', '--name', name];
      if (command !== 'request') await client.ok(stage.alice, ...ask, '--no-wait');
      const waiting = client.start(stage.alice, ...(command === 'request' ? ask : [command, name]));
      await says(
        waiting,
        /container \S+: CreateContainerError: .*; see the Events of the Pod with: kubectl describe pod/,
      );
      const status = (await stage.read('PodAccessRequest', name))?.status;
      const died = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
      const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status: died })];
      await stage.kubectl('patch', 'pod', status?.podName ?? '', ...patch);
      const diedMs = Date.now();
      const { code, stderr } = await waiting.ended;
      assert.ok(Date.now() - diedMs < 5000);
      assert.equal(code, 5, stderr);
      assert.match(stderr, /has ended: .*its pod has ended: Failed: Evicted: The node was low on resource: memory\./);
    });
  }

  it('sees for whom a request waits, can stop waiting, and go on later', async () => {
    await patchTemplate({ approvals: { all: [{ name: 'peer', groups: ['devs'] }] } });
    try {
      const ask = ['request', 'pod', 'payments-shell', '--name', 'waits'];
      const running = client.start(stage.alice, ...ask);
      await says(running, /waiting for approvals until \S+: peer 0 of 1 from \[devs\]/);
      running.kill('SIGINT');
      const { code, stderr } = await running.ended;
      assert.equal(code, 130);
      assert.match(
        stderr,
        /interrupted; access is not open: waiting for approvals until \S+: peer 0 of 1 from \[devs\]\. To go on: drawbridge watch pod\/waits .*To revoke it: drawbridge revoke pod\/waits/,
      );
      const later = await client.run(stage.alice, 'watch', 'waits', '--timeout', '1s');
      assert.equal(later.code, 4, later.stderr);
      const [, row] = (await client.ok(stage.alice, 'list')).split('\n').filter((line) => /^(NAME|waits)/.test(line));
      assert.equal(fields(row)[3], 'Waiting');
      const waiting = client.start(stage.alice, 'watch', 'waits');
      await says(waiting, /peer 0 of 1/);
      await client.ok(stage.alice, 'revoke', 'waits', '--reason', 'not needed');
      assert.equal((await waiting.ended).code, 5);
    } finally {
      await patchTemplate({ approvals: null });
    }
  });

  it('makes every call with the credentials of the person, also by impersonation', async () => {
    const since = stage.plane.auditLog.mark();
    await client.ok(stage.alice, 'list');
    const groups = ['--as-group', 'devs', '--as-group', 'system:authenticated'];
    await client.ok({ kubeconfig: stage.plane.adminKubeconfig }, 'list', '--as', 'dora', ...groups);
    const denied = await client.run(stage.alice, 'list', '--as', 'dora');
    assert.equal(denied.code, 3);
    assert.match(denied.stderr, /cannot impersonate/);
    const lists = { since, verbs: ['list'], resources: ['podaccessrequests'] };
    const callers = stage.plane.auditLog
      .calls(lists)
      // Excludes lists of all namespaces, with which the server begins watches.
      .filter(({ namespace }) => namespace === stage.namespace)
      .map(({ user, impersonated, code }) => [user, impersonated, code] as const);
    assert.deepEqual(callers, [
      ['alice', undefined, 200],
      ['sandbox-admin', 'dora', 200],
    ]);
  });

  it('reaches the cluster through the proxy of the kubeconfig', async () => {
    const tunnels: string[] = [];
    const proxy = createServer();
    proxy.on('connect', ({ url = '', headers }, client, head) => {
      tunnels.push(`${headers['proxy-authorization'] ?? ''} ${url}`);
      if (headers['proxy-authorization'] !== `Basic ${Buffer.from('a:b').toString('base64')}`) {
        client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
        return;
      }
      const { hostname, port } = new URL(`http://${url}`);
      const server = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        server.write(head);
        server.pipe(client).pipe(server);
      });
      for (const socket of [client, server]) socket.on('error', () => server.destroy());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    const through = (name: string, url: string): Promise<{ kubeconfig: string }> => changed(name, { 'proxy-url': url });
    try {
      assert.match(
        await client.ok(await through('proxy', `http://a:b@127.0.0.1:${port}`), 'templates'),
        /payments-shell/,
      );
      assert.ok(
        tunnels.every((line) => line.endsWith(` ${new URL(stage.plane.server).host}`)),
        tunnels.join(),
      );
      const { code, stderr } = await client.run(await through('no-login', `http://127.0.0.1:${port}`), 'templates');
      assert.equal(code, 1);
      assert.match(stderr, /cannot reach the cluster: .*proxy 127\.0\.0\.1:\d+: answered 407 to CONNECT/);
    } finally {
      proxy.close();
    }
  });

  it('is told in one line that no cluster is at the address', async () => {
    const person = await changed('nowhere', { server: 'https://127.0.0.1:9' });
    const { code, stdout, stderr } = await client.run(person, 'list');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^drawbridge: cannot reach the cluster: .*ECONNREFUSED.*; check the network[^\n]*\n*$/);
  });

  it('is told that a watch has lost its connection, and that this affects no request', async function () {
    this.timeout(90_000);
    const proxy = await stage.plane.proxy();
    const kubeconfig = await stage.plane.kubeconfigFor('alice', ['devs'], { server: proxy.server });
    const running = client.start({ kubeconfig }, 'list', '-w', '--everyone', '-o', 'json');
    await client.ok(stage.alice, 'request', 'exec', 'payments-exec', '--name', 'lost-watch');
    await until('an event', () => running.soFar().stdout.includes('lost-watch'), { timeoutMs: 30_000 });
    proxy.refuse();
    proxy.resetAll();
    const { code, stderr } = await running.ended;
    await proxy.close();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /lost the watch: .*; this does not affect the requests; check the network/);
  });
});
