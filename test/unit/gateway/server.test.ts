import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { TLSSocket } from 'node:tls';
import { createAuthority } from '../../../sandbox/pki.ts';
import { newSignedPair } from '../../../src/certificates/material.ts';
import { refuseUpgrade } from '../../../src/gateway/answers.ts';
import { isApiServer } from '../../../src/gateway/front-proxy.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import type { KeyPair } from '../../../src/kit/key-pair.ts';
import {
  connectTo,
  frontProxyOf,
  frontProxySettings,
  type GatewayServer,
  openGatewayServer,
} from '../../support/gateway-server.ts';

describe('the server of the gateway', () => {
  const newPair = () => newSignedPair(['gateway.ns.svc'], Date.now());

  it('takes no client for the API server that resumes a session without a certificate, whatever names are allowed', async () => {
    const { pair, authority } = newPair();
    const settings = frontProxySettings(createAuthority('front-proxy').certificate);
    const onRequest: Parameters<typeof openGatewayServer>[1]['onRequest'] = async ({ socket }, response) =>
      void response.end(`trusted: ${socket instanceof TLSSocket && isApiServer(socket, settings)}`);
    const server = await openGatewayServer(pair, { onRequest }, { frontProxy: frontProxyOf(settings) });
    /** Makes one call, and returns its answer and the session for the next one. */
    const call = async (session?: Buffer) => {
      const socket = connectTo(server, authority, session ? { session } : {});
      let next = session;
      socket.on('session', (ticket: Buffer) => {
        next = ticket;
      });
      await once(socket, 'secureConnect');
      const resumed = socket.isSessionReused();
      socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      return { answer: await text(socket), resumed, session: next ?? socket.getSession() };
    };
    try {
      const first = await call();
      assert.match(first.answer, /trusted: false/);
      const second = await call(first.session);
      assert.match(second.answer, /trusted: false/);
      assert.equal(second.resumed, false);
    } finally {
      await server.close();
    }
  });

  it('closes although a client keeps a refused upgrade open', async () => {
    const { pair, authority } = newPair();
    const server = await openGatewayServer(pair, {
      onUpgrade: async (_request, socket) =>
        refuseUpgrade(socket, { status: 401, code: 'NotApiServer', message: 'no' }),
    });
    const socket = connectTo(server, authority, { allowHalfOpen: true });
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(answer.toString(), /^HTTP\/1\.1 401 Unauthorized/);
    await server.close();
  });

  describe('with a large head of a call', () => {
    const { pair, authority } = newPair();
    let server: GatewayServer;
    before(async () => {
      server = await openGatewayServer(pair, {
        onRequest: async ({ url = '' }, response) => void response.end(`${url.length} characters`),
      });
    });
    after(() => server.close());

    /** Sends a call with a path of the size, and resolves to the answer and how long the connection stayed open. */
    async function answerTo(size: number, after = '\r\n\r\n'): Promise<{ answer: string; tookMs: number }> {
      const startedMs = systemClock.monotonic();
      const socket = connectTo(server, authority);
      socket.on('error', () => {});
      socket.write(`GET /${'x'.repeat(size - 1)} HTTP/1.1\r\nHost: x\r\nConnection: close${after}`);
      let answer = '';
      socket.on('data', (chunk: Buffer) => {
        answer += chunk.toString();
      });
      await once(socket, 'close');
      return { answer, tookMs: systemClock.monotonic() - startedMs };
    }

    it('answers one of 250 KiB', async () => {
      assert.match((await answerTo(250 * 1024)).answer, /^HTTP\/1\.1 200 OK.*256000 characters/s);
    });

    for (const kib of [257, 4096]) {
      it(`refuses one of ${kib} KiB with 431, and says what to do`, async () => {
        const { answer } = await answerTo(kib * 1024);
        assert.match(answer, /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n.*256 KiB;/s);
        assert.equal(answer.split('HTTP/1.1').length, 2, 'one answer');
      });
    }

    it('closes the connection of one that never ends', async () => {
      const { answer, tookMs } = await answerTo(300 * 1024, '');
      assert.match(answer, /^HTTP\/1\.1 431 /);
      assert.ok(tookMs < 4000, `${tookMs} ms`);
    });
  });

  it('serves a renewed pair as soon as it gets it, also while the certificate still names the earlier one', async () => {
    const [before, renewed] = [newPair(), newPair()];
    let renew: (pair: KeyPair) => void = () => {};
    const start = (listener: typeof renew): void => {
      renew = listener;
      listener(before.pair);
    };
    const server = await openGatewayServer(
      before.pair,
      {},
      { certificate: { current: before.pair, start, close() {} } },
    );
    const isServed = async ({ authority }: ReturnType<typeof newPair>): Promise<boolean> => {
      const socket = connectTo(server, authority);
      const trusted = await once(socket, 'secureConnect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      return trusted;
    };
    try {
      assert.equal(await isServed(before), true);
      renew(renewed.pair);
      assert.equal(await isServed(renewed), true);
      assert.equal(await isServed(before), false);
    } finally {
      await server.close();
    }
  });
});
