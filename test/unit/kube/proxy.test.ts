import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { request } from 'undici';
import { listenHttp } from '../../../src/kit/listen.ts';
import { openAgent } from '../../../src/kube/json-call.ts';

describe('a connection through the proxy of a kubeconfig', () => {
  /** The targets of CONNECT. */
  let targets: string[];
  let proxy: string;
  let api: string;
  const sockets = new Set<Socket>();
  const server = createServer((_, answer) => void answer.end('from the API server'));
  const tunnels = createServer();

  before(async () => {
    for (const each of [server, tunnels]) each.on('connection', (socket: Socket) => void sockets.add(socket));
    const { port } = await listenHttp(server, '127.0.0.1', 0);
    api = `http://127.0.0.1:${port}`;
    proxy = `http://127.0.0.1:${(await listenHttp(tunnels, '127.0.0.1', 0)).port}`;
    tunnels.on('connect', (call, client: Socket) => {
      targets.push(call.url ?? '');
      const upstream = connect(port, '127.0.0.1');
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
