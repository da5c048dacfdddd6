import { type AddressInfo, createServer } from 'node:net';
import { until } from '../../../sandbox/wait.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import { GatewayStage } from '../../support/gateway-stage.ts';

describe('a stream of an older client through the gateway', () => {
  let stage: GatewayStage;
  /** The path of the pod through a grant. */
  let pod: string;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open();
    const { namespace } = stage;
    const { name } = await stage.grant();
    pod = `${grantProxyPath(namespace, name)}/api/v1/namespaces/${namespace}/pods/payments`;
  });
  after(() => stage?.close());

  it('passes exec, although its protocol has no exit code', async () => {
    const path = `${pod}/exec?stdout=true&stderr=true&command=echo&command=hello`;
    const stream = (await stage.alice.stream(path, 'channel.k8s.io')).read();
    await stream.shows(/hello/);
    await stream.closed;
  });

  it('forwards ports in channels of the WebSocket', async () => {
    const target = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    await until('the target to listen', async () => target.listening, { timeoutMs: 30_000 });
    const { port } = target.address() as AddressInfo;
    const path = `${pod}/portforward?ports=${port}`;
    const stream = (await stage.alice.stream(path, 'v4.channel.k8s.io')).read();
    stream.send('\0hello');
    await stream.shows(/\0hello/);
    stream.socket.destroy();
    target.close();
  });
});
