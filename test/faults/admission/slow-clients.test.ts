import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { Agent, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { FileCertificate } from '../../../src/admission/certificate.ts';
import { type AdmissionServer, startAdmissionServer } from '../../../src/admission/server.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { noLog } from '../../../src/observe/log.ts';
import { sideBySide } from '../../support/side-by-side.ts';
import { accessRequest, paths, requester, reviewOf, World } from '../../unit/admission/support.ts';

const authority = createAuthority('test');
const body = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: reviewOf('podaccessrequests', 'CREATE', { object: accessRequest({ requester }) }),
});

describe('slow clients', function () {
  this.timeout(30_000);
  const folder = mkdtempSync(join(tmpdir(), 'drawbridge-slow-'));
  const agent = new Agent({ keepAlive: true });
  const sockets: Socket[] = [];
  let server: AdmissionServer;

  before(async () => {
    const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
    const { certificate, key } = issue(authority, { commonName: 'webhook', serves: ['127.0.0.1'] });
    writeFileSync(files.certFile, certificate);
    writeFileSync(files.keyFile, key);
    const app = new World().app as RequestListener;
    const options = { clock: systemClock, log: noLog };
    const loaded = new FileCertificate({ ...files, ...options });
    server = await startAdmissionServer({ app, certificate: loaded, host: '127.0.0.1', port: 0, ...options });
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    agent.destroy();
    await server.close();
    rmSync(folder, { recursive: true });
  });

  const review = async (): Promise<number> => {
    const sent = request({
      host: '127.0.0.1',
      port: server.port,
      path: paths.validatePod,
      method: 'POST',
      agent,
      ca: authority.certificate,
      headers: { 'content-type': 'application/json', 'content-length': body.length },
    });
    const start = performance.now();
    sent.end(body);
    const [answer] = await once(sent, 'response');
    for await (const _ of answer);
    assert.equal(answer.statusCode, 200);
    return performance.now() - start;
  };
  const keep = <T extends Socket>(socket: T): T => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.resume();
    return socket;
  };
  const tls = async (): Promise<Socket> => {
    const socket = keep(connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate }));
    await once(socket, 'secureConnect');
    return socket;
  };
  /** Milliseconds until the server ends the connection. */
  const lifeOf = async (socket: Socket): Promise<number> => {
    const start = performance.now();
    await once(socket, 'close');
    return performance.now() - start;
  };

  sideBySide([
    [
      'are disconnected, after 5 s for headers and handshakes and after 10 s for the whole request, while others get answers',
      async () => {
        await review();
        const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
        const noHandshake = lifeOf(keep(connectTcp(server.port, '127.0.0.1')));
        const slowHeaders = await tls();
        slowHeaders.write(head);
        const headers = lifeOf(slowHeaders);
        const slowBody = await tls();
        slowBody.write(`${head}Content-Length: 1000\r\n\r\n{`);
        const bodies = lifeOf(slowBody);
        await Promise.all(Array.from({ length: 300 }, tls));
        const times: number[] = [];
        const settled = Promise.all([noHandshake, headers, bodies]);
        let over = false;
        void settled.then(() => {
          over = true;
        });
        while (!over) {
          times.push(await review());
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        const [handshakeMs, headersMs, bodyMs] = await settled;
        for (const [title, ms, limit] of [
          ['handshake', handshakeMs, 5_000],
          ['headers', headersMs, 5_000],
          ['body', bodyMs, 10_000],
        ] as const) {
          assert.ok(ms > limit - 1_500 && ms < limit + 2_500, `${title}: ${ms} ms`);
        }
        const p99 = times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;
        assert.ok(p99 <= 250, `p99 ${p99} ms`);
      },
    ],
    // Go's HTTP client opens spare connections. Bytes from the server would corrupt its first call on one.
    [
      'may use a spare connection after twice the limit for headers, and the server sends nothing before',
      async () => {
        const spare = await tls();
        const received: string[] = [];
        spare.on('data', (chunk) => received.push(String(chunk)));
        await new Promise((resolve) => setTimeout(resolve, 10_000));
        assert.deepEqual(received, []);
        const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
        spare.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
        await once(spare, 'data');
        assert.match(received.join(''), /^HTTP\/1\.1 200 OK/);
      },
    ],
    [
      'that send bytes which are no call are disconnected, on spare connections and after calls',
      async () => {
        const spare = await tls();
        const used = await tls();
        const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
        used.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
        // Longer than Node's own limit for a connection without a call.
        await new Promise((resolve) => setTimeout(resolve, 7_000));
        const lives = [lifeOf(spare), lifeOf(used)];
        const lineBreaks = setInterval(() => {
          for (const socket of [spare, used]) socket.write('\r\n'.repeat(1000));
        }, 100);
        for (const ms of await Promise.all(lives)) assert.ok(ms < 10_000, `${ms} ms`);
        clearInterval(lineBreaks);
      },
    ],
    [
      'that ignore the 408 are disconnected',
      async () => {
        // A client that continues to write after the server has ended its side.
        const halfOpen = { host: '127.0.0.1', port: server.port, ca: authority.certificate, allowHalfOpen: true };
        const socket = keep(connect(halfOpen));
        await once(socket, 'secureConnect');
        const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
        socket.write(`${head}Content-Length: 1000\r\n\r\n`);
        const startMs = performance.now();
        const trickle = setInterval(() => socket.write('{'), 200);
        // The last write may fail, because the connection is reset.
        await new Promise((resolve) => socket.once('close', resolve));
        clearInterval(trickle);
        const ms = performance.now() - startMs;
        assert.ok(ms < 15_000, `${ms} ms`);
      },
    ],
  ]);
});
