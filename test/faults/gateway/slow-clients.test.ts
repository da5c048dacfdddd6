import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { newSignedPair } from '../../../src/certificates/material.ts';
import { connectTo, type GatewayServer, openGatewayServer } from '../../support/gateway-server.ts';

describe('slow clients of the gateway', () => {
  const { pair, authority } = newSignedPair(['gateway.ns.svc'], Date.now());
  let server: GatewayServer;

  before(async () => {
    server = await openGatewayServer(pair, { onRequest: async (_request, response) => void response.end('answered') });
  });
  after(() => server.close());

  const tls = () => connectTo(server, authority);
  const head = 'GET / HTTP/1.1\r\nHost: x\r\n';
  /** Milliseconds until the server ends the connection. */
  const lifeOf = async (socket: Socket): Promise<number> => {
    const startedMs = performance.now();
    socket.on('error', () => {});
    socket.resume();
    await once(socket, 'close');
    return performance.now() - startedMs;
  };

  it('are disconnected 5 s after they began a handshake or a head, even if they send on, while others get answers', async () => {
    const slowHead = tls();
    slowHead.write(head);
    const dribble = setInterval(() => slowHead.write('x'), 200);
    try {
      const lives = Promise.all([lifeOf(connectTcp(server.port, '127.0.0.1')), lifeOf(slowHead)]);
      const other = tls();
      other.write(`${head}Connection: close\r\n\r\n`);
      assert.match(await text(other), /^HTTP\/1\.1 200 OK.*answered/s);
      for (const ms of await lives) assert.ok(ms > 3_500 && ms < 10_000, `${ms} ms`);
    } finally {
      clearInterval(dribble);
      slowHead.destroy();
    }
  });
});
