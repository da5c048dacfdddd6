import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
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

  it('shows the pod, and no other', async () => {
    const { stdout } = await kubectl('get', 'pods', '-o', 'name');
    assert.equal(stdout, 'pod/payments\n');
    const other = await kubectl('get', 'pods', 'other');
    assert.match(other.stderr, /NotFound|is not part of grant/);
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
});
