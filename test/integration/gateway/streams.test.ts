import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type AddressInfo, connect, createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { until } from '../../../sandbox/wait.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';

describe('a stream through the gateway, by kubectl', () => {
  let stage: GatewayStage;
  let grant: StagedGrant;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
    grant = await stage.grant();
  });
  after(() => stage?.close());

  const kubectl = (...args: string[]) => stage.alice.kubectl([...grant.via, ...args], { reject: false });

  it('runs a command, with its output and errors apart', async () => {
    const { stdout, stderr, code } = await kubectl('exec', 'payments', '--', 'sh', '-c', 'echo out; echo err >&2');
    assert.deepEqual([stdout, stderr, code], ['out\n', 'err\n', 0]);
  });

  it('passes megabytes of output without loss', async () => {
    const { stdout } = await kubectl('exec', 'payments', '--', 'sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x');
    assert.equal(stdout.length, 3_000_000);
  });

  it('shows the pod, and no other', async () => {
    const { stdout } = await kubectl('get', 'pods', '-o', 'name');
    assert.equal(stdout, 'pod/payments\n');
    const other = await kubectl('get', 'pods', 'other');
    assert.match(other.stderr, /NotFound|is not part of grant/);
  });

  it('gives a terminal, with echo', async () => {
    const terminal = stage.terminal(stage.alice, [...grant.via, 'exec', '-ti', 'payments', '--', 'sh']);
    await terminal.shows(/[$#] /);
    terminal.write('echo $((40+2))\n');
    await terminal.shows(/^42/m);
    terminal.write('exit\n');
    assert.equal(await terminal.exit(), 0);
  });

  it('passes exec of older clients, whose protocol has no exit code', async () => {
    const { namespace } = stage;
    const pod = `${grantProxyPath(namespace, grant.name)}/api/v1/namespaces/${namespace}/pods/payments`;
    const path = `${pod}/exec?stdout=true&stderr=true&command=echo&command=hello`;
    const stream = (await stage.alice.stream(path, 'channel.k8s.io')).read();
    await stream.shows(/hello/);
    await stream.closed;
  });

  it('forwards ports to older clients, in channels of the WebSocket', async () => {
    const target = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    await until('the target to listen', async () => target.listening, { timeoutMs: 30_000 });
    const { port } = target.address() as AddressInfo;
    const { namespace } = stage;
    const pod = `${grantProxyPath(namespace, grant.name)}/api/v1/namespaces/${namespace}/pods/payments`;
    const path = `${pod}/portforward?ports=${port}`;
    const stream = (await stage.alice.stream(path, 'v4.channel.k8s.io')).read();
    stream.send('\0hello');
    await stream.shows(/\0hello/);
    stream.socket.destroy();
    target.close();
  });

  it('forwards ports', async () => {
    const content = randomBytes(1_000_000);
    const target = createServer((socket) => socket.end(content)).listen(0, '127.0.0.1');
    await until('the target to listen', async () => target.listening, { timeoutMs: 30_000 });
    const { port } = target.address() as AddressInfo;
    const forward = stage.terminal(stage.alice, [...grant.via, 'port-forward', 'pod/payments', `:${port}`]);
    const shown = await forward.shows(/Forwarding from 127\.0\.0\.1:(\d+)/);
    const local = connect(Number(/127\.0\.0\.1:(\d+)/.exec(shown)?.[1]), '127.0.0.1');
    const answer = await buffer(local);
    assert.ok(answer.equals(content), `${answer.length} bytes`);
    forward.kill();
    target.close();
  });
});
