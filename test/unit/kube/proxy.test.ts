import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { request } from 'undici';
import { openAgent } from '../../../src/kube/json-call.ts';

describe('a connection through the proxy of a kubeconfig', () => {
  /** The targets of CONNECT. */
  let targets: string[];
  let proxy: string;
  let api: string;
  const sockets = new Set<Socket>();
  const server = createServer((_, answer) => void answer.end('from the API server'));
  const tunnels = createServer();

  const portOf = (of: Server): number => (of.address() as AddressInfo).port;

  before(async () => {
    for (const each of [server, tunnels]) {
      each.on('connection', (socket: Socket) => void sockets.add(socket));
      each.listen(0, '127.0.0.1');
      await once(each, 'listening');
    }
    api = `http://127.0.0.1:${portOf(server)}`;
    proxy = `http://127.0.0.1:${portOf(tunnels)}`;
    tunnels.on('connect', (call, client: Socket) => {
      targets.push(call.url ?? '');
      const upstream = connect(portOf(server), '127.0.0.1');
      sockets.add(upstream);
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
  });
  beforeEach(() => {
    targets = [];
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    tunnels.close();
  });

  it('reaches an API server that is called without TLS', async () => {
    const dispatcher = openAgent({ proxy });
    const { body } = await request(api, { dispatcher });
    assert.equal(await body.text(), 'from the API server');
    assert.deepEqual(targets, [new URL(api).host]);
    await dispatcher.destroy();
  });

  it('names an IPv6 address in brackets', async () => {
    const dispatcher = openAgent({ proxy });
    const { body } = await request('http://[fd00::1]:6443', { dispatcher });
    await body.dump();
    assert.deepEqual(targets, ['[fd00::1]:6443']);
    await dispatcher.destroy();
  });
});
