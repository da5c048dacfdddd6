import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { createAuthority, type Identity, issue } from '../../../sandbox/pki.ts';
import { FileCertificate } from '../../../src/admission/certificate.ts';
import { type AdmissionServer, startAdmissionServer } from '../../../src/admission/server.ts';
import { type Clock, systemClock } from '../../../src/kit/clock.ts';
import { deferred } from '../../../src/kit/promises.ts';
import { noLog } from '../../../src/observe/log.ts';
import { advanceIo, settleIo } from '../../support/io.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { accessRequest, paths, requester, reviewOf, World } from './support.ts';

const authority = createAuthority('test');
const newIdentity = (): Identity => issue(authority, { commonName: 'webhook', serves: ['localhost', '127.0.0.1'] });
const body = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: reviewOf('podaccessrequests', 'CREATE', { object: accessRequest({ requester }) }),
});

async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!holds()) {
    assert.ok(performance.now() < deadline, 'it did not come to that within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('the webhook server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'drawbridge-server-'));
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  let server: AdmissionServer;
  let agent: Agent;
  const write = ({ certificate, key }: Identity): void => {
    writeFileSync(files.certFile, certificate);
    writeFileSync(files.keyFile, key);
  };
  /** With a simulated clock, the server ends its connections only when the test advances the clock. */
  const start = async (app: RequestListener, clock: Clock = systemClock): Promise<void> => {
    const certificate = new FileCertificate({ ...files, clock: systemClock, log: noLog });
    server = await startAdmissionServer({ app, certificate, host: '127.0.0.1', port: 0, clock, log: noLog });
  };
  const post = async (path: string = paths.validatePod): Promise<{ status: number; text: string; peer: string }> => {
    const sent = request({
      host: '127.0.0.1',
      port: server.port,
      path,
      method: 'POST',
      agent,
      ca: authority.certificate,
      headers: { 'content-type': 'application/json', 'content-length': body.length },
    });
    sent.end(body);
    const [answer] = await once(sent, 'response');
    const peer = (answer.socket as TLSSocket).getPeerCertificate().serialNumber;
    let text = '';
    for await (const chunk of answer) text += chunk;
    return { status: answer.statusCode, text, peer };
  };
  /** A connection that the server has accepted, before its first call. */
  const idleClient = async () => {
    const socket = connect({
      host: '127.0.0.1',
      port: server.port,
      ca: authority.certificate,
      servername: 'localhost',
    });
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', () => {});
    await once(socket, 'secureConnect');
    await settleIo();
    return { call: () => void socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), received: () => received };
  };
  beforeEach(() => {
    agent = new Agent({ keepAlive: true });
    write(newIdentity());
  });
  afterEach(async () => {
    agent.destroy();
    await server.close();
  });
  after(() => rmSync(folder, { recursive: true }));

  it('answers reviews over TLS', async () => {
    await start(new World().app);
    const { status, text } = await post();
    assert.equal(status, 200);
    assert.equal(JSON.parse(text).response.allowed, true);
  });

  it('speaks only HTTP/1.1, and survives clients that insist on more', async () => {
    await start(new World().app);
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { ca: authority.certificate });
    await assert.rejects(once(session, 'connect'));
    assert.equal((await post()).status, 200);
  });

  it('rejects TLS below 1.2 and invalid requests, and continues', async () => {
    await start(new World().app);
    const old = connect({
      host: '127.0.0.1',
      port: server.port,
      ca: authority.certificate,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    await assert.rejects(once(old, 'secureConnect'));
    const noise = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate });
    await once(noise, 'secureConnect');
    noise.end('\u0016\u0003 what is this\r\n\r\n');
    let text = '';
    for await (const chunk of noise) text += chunk;
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.equal((await post()).status, 200);
  });

  it('closes the connection of a body that is too large or ends early, and continues', async () => {
    await start(new World().app);
    const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    const cases: [string, RegExp | undefined][] = [
      [`${head}Content-Length: 10000000\r\n\r\n{}`, /^HTTP\/1\.1 413 /],
      [
        `${head}Transfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(0x10000)}\r\n`.repeat(70)}`,
        /^HTTP\/1\.1 413 /,
      ],
      [`${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{}`, /^HTTP\/1\.1 400 /],
      [`${head}Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\u001f\u008b`, /^HTTP\/1\.1 415 /],
    ];
    for (const [bytes, expected] of cases) {
      const socket = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate });
      await once(socket, 'secureConnect');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      // After its answer, the server may reset the rest of the upload.
      socket.on('error', () => {});
      socket.write(bytes);
      await once(socket, 'close');
      if (expected) assert.match(text, expected);
    }
    const early = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate });
    await once(early, 'secureConnect');
    early.write(`${head}Content-Length: 100\r\n\r\n{`);
    early.destroy();
    assert.equal((await post()).status, 200);
  });

  it('serves a new certificate to new connections without failing a request', async () => {
    await start(new World().app);
    const { peer: before } = await post();
    const stop = deferred();
    let stopped = false;
    void stop.promise.then(() => {
      stopped = true;
    });
    const statuses = new Set<number>();
    const traffic = Array.from({ length: 4 }, async () => {
      while (!stopped) statuses.add((await post()).status);
    });
    write(newIdentity());
    const deadline = performance.now() + 5_000;
    let peer = before;
    while (peer === before && performance.now() < deadline) {
      const fresh = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate });
      await once(fresh, 'secureConnect');
      peer = fresh.getPeerCertificate().serialNumber;
      fresh.destroy();
    }
    stop.resolve();
    await Promise.all(traffic);
    assert.notEqual(peer, before);
    assert.deepEqual([...statuses], [200]);
  });

  it('loses no request of busy connections when it closes, and then accepts none', async () => {
    await start(new World().app);
    const several = (): Promise<{ status: number }[]> => Promise.all(Array.from({ length: 4 }, () => post()));
    await several();
    const closing = server.close();
    const statuses = [...(await several()), ...(await several())].map(({ status }) => status);
    await closing;
    assert.deepEqual([...new Set(statuses)], [200]);
    await assert.rejects(post(), { code: 'ECONNREFUSED' });
  });

  it('answers a call that arrives while a busy process closes', async () => {
    const timers = new Set<() => void>();
    const schedule: Clock['schedule'] = (delayMs, callback) => {
      if (delayMs <= 0) return systemClock.schedule(0, callback);
      timers.add(callback);
      return () => timers.delete(callback);
    };
    const runTimers = (): void => {
      const due = [...timers];
      timers.clear();
      for (const callback of due) callback();
    };
    await start((_request, response) => response.end('late'), { ...systemClock, schedule });
    const client = await idleClient();
    const closing = server.close();
    for (let sweep = 1; sweep < 10; sweep += 1) {
      runTimers();
      await settleIo();
    }
    client.call();
    let closed = false;
    void closing.then(() => {
      closed = true;
    });
    // At the first turn the call has arrived, but this process has not read it.
    while (!closed) {
      runTimers();
      await settleIo();
    }
    assert.match(client.received(), /^HTTP\/1\.1 200 OK\r\n.*\r\nlate$/s);
  });

  it('delivers pending answers when it closes, and accepts no new calls', async () => {
    const entered = deferred();
    const release = deferred();
    const clock = new SimulatedClock();
    await start((_request, response) => {
      entered.resolve();
      void release.promise.then(() => response.end('late'));
    }, clock);
    const answer = post();
    await entered.promise;
    const closing = server.close();
    release.resolve();
    assert.equal((await answer).text, 'late');
    await advanceIo(clock, 1_500, 50);
    await closing;
    await assert.rejects(post(), { code: 'ECONNREFUSED' });
  });

  it('closes without waiting for connections that never carried a request', async () => {
    const clock = new SimulatedClock();
    await start(new World().app, clock);
    const spare = connect({ host: '127.0.0.1', port: server.port, ca: authority.certificate, servername: 'localhost' });
    await once(spare, 'secureConnect');
    spare.on('error', () => {});
    const closing = server.close();
    await advanceIo(clock, 1_500, 50);
    await closing;
  });

  for (const { stallMs, answers } of [
    { stallMs: 250, answers: false },
    { stallMs: 251, answers: true },
  ]) {
    it(`${answers ? 'waits for' : 'no longer answers'} late calls when its last check comes ${stallMs - 50} ms late`, async () => {
      const clock = new SimulatedClock();
      await start((_request, response) => response.end('late'), clock);
      const client = await idleClient();
      const closing = server.close();
      await advanceIo(clock, 950, 50);
      clock.stall(stallMs);
      await clock.advance(0);
      client.call();
      await advanceIo(clock, 1_500, 50);
      await closing;
      assert.equal(client.received().endsWith('late'), answers);
    });
  }

  describe('under a flood', () => {
    const sockets: Socket[] = [];
    const open = (localAddress: string): Socket => {
      const socket = connectTcp({ host: '127.0.0.1', port: server.port, localAddress });
      socket.on('error', () => {});
      sockets.push(socket);
      return socket;
    };
    const openTls = async (localAddress: string): Promise<TLSSocket> => {
      const socket = connect({ socket: open(localAddress), ca: authority.certificate, servername: 'localhost' });
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
      return socket;
    };
    const head = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    const world = new World();
    beforeEach(() => start(world.app));
    afterEach(() => {
      for (const socket of sockets.splice(0)) socket.destroy();
    });

    it('with 1,200 silent connections of three other addresses: still answers a new one', async function () {
      this.timeout(30_000);
      await Promise.all(
        Array.from({ length: 1_200 }, (_, index) => once(open(`127.0.0.${2 + (index % 3)}`), 'connect')),
      );
      assert.equal((await post()).status, 200);
    });

    it('with idle connections of the address that the API server has: evicts some for another one, and no call in flight', async function () {
      this.timeout(30_000);
      const { template } = world;
      const entered = deferred();
      const release = deferred();
      world.template = async () => {
        entered.resolve();
        await release.promise;
        return template();
      };
      const answer = post();
      await entered.promise;
      const idle = Array.from({ length: 511 }, () => open('127.0.0.1'));
      for (let index = 0; index < 512; index++) open(`127.0.0.${2 + (index % 2)}`);
      const evicted = once(idle[0]?.resume() as Socket, 'close');
      await openTls('127.0.0.4');
      await evicted;
      release.resolve();
      world.template = template;
      assert.equal((await answer).status, 200);
    });

    it('with connections of one address: closes those beyond its 512 before TLS', async function () {
      this.timeout(30_000);
      const closed: Socket[] = [];
      const opened = Array.from({ length: 520 }, () => open('127.0.0.2'));
      for (const socket of opened) socket.once('close', () => closed.push(socket)).resume();
      await until(() => closed.length >= 8);
      assert.ok(closed.every((socket) => socket.bytesRead === 0));
      assert.equal((await post()).status, 200);
    });

    it('with connections of the address that the API server has: closes new ones and answers it on those that it has', async function () {
      this.timeout(30_000);
      assert.equal((await post()).status, 200);
      const closed: Socket[] = [];
      for (let index = 0; index < 520; index++) {
        const socket = open('127.0.0.1');
        socket.once('close', () => closed.push(socket)).resume();
      }
      await until(() => closed.length >= 9);
      assert.equal((await post()).status, 200);
    });

    it('with unfinished bodies: keeps at most 64 MiB, and evicts some for a caller with few', async function () {
      this.timeout(30_000);
      const before = world.overloads.length;
      const texts: string[] = [];
      for (let index = 0; index < 24; index++) {
        const socket = await openTls(`127.0.0.${2 + (index % 4)}`);
        texts[index] = '';
        socket.on('data', (chunk) => {
          texts[index] += chunk;
        });
        socket.write(`${head}Content-Length: 4194304\r\n\r\n{`);
      }
      const refused = (): number => texts.filter((text) => text.startsWith('HTTP/1.1 503')).length;
      await until(() => refused() === 8);
      assert.deepEqual(world.overloads.slice(before), Array(8).fill('bytes'));
      assert.equal((await post()).status, 200);
    });

    it('with unfinished bodies of the address that the API server has: answers it, whose body is smaller', async function () {
      this.timeout(30_000);
      for (let index = 0; index < 16; index++) {
        const socket = await openTls('127.0.0.1');
        socket.write(`${head}Content-Length: 4194304\r\n\r\n{`);
      }
      const extra = await openTls('127.0.0.1');
      extra.write(`${head}Content-Length: 4194304\r\n\r\n{`);
      const [refused] = (await once(extra, 'data')) as [Buffer];
      assert.match(`${refused}`, /^HTTP\/1.1 503/, 'all room is taken');
      assert.equal((await post()).status, 200);
    });

    it('with a body of single bytes: uses memory for the body, not for the pieces', async function () {
      this.timeout(30_000);
      const socket = await openTls('127.0.0.2');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.setNoDelay(true);
      socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
      for (const byte of body) socket.write(`1\r\n${byte}\r\n`);
      socket.write('0\r\n\r\n');
      await until(() => text.includes('"allowed":true'));
    });
  });

  for (const [title, answer] of [
    ['that has no answer yet', () => {}],
    ['whose answer was the last one', (response) => response.setHeader('connection', 'close').end('no')],
  ] as [string, (response: ServerResponse) => void][]) {
    it(`ends a connection with further calls after one ${title}`, async () => {
      let calls = 0;
      await start((_request, response) => {
        calls++;
        answer(response);
      });
      const socket = connect({
        host: '127.0.0.1',
        port: server.port,
        ca: authority.certificate,
        servername: 'localhost',
      });
      socket.on('error', () => {});
      await once(socket, 'secureConnect');
      socket.resume();
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500));
      await once(socket, 'close');
      assert.equal(calls, 1);
    });
  }

  it('answers a call that arrives right after the previous answer', async () => {
    await start((_request, response) => response.end('answered'));
    const socket = connect({
      host: '127.0.0.1',
      port: server.port,
      ca: authority.certificate,
      servername: 'localhost',
    });
    await once(socket, 'secureConnect');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2));
    await until(() => text.split('answered').length === 3);
    socket.destroy();
  });

  it('serves only callers with a client certificate of the authority, also after a new serving certificate', async () => {
    const clients = createAuthority('clients');
    const app: RequestListener = (_request, response) => response.end('answered');
    const certificate = new FileCertificate({ ...files, clock: systemClock, log: noLog });
    const options = { app, certificate, host: '127.0.0.1', port: 0, clock: systemClock, log: noLog };
    server = await startAdmissionServer({ ...options, clientAuthorities: Buffer.from(clients.certificate) });
    const asked = async (identity?: Identity): Promise<string> => {
      const shown = identity ? { cert: identity.certificate, key: identity.key } : {};
      const sent = request({ host: '127.0.0.1', port: server.port, ca: authority.certificate, agent: false, ...shown });
      sent.end();
      const [answer] = await once(sent, 'response');
      let text = '';
      for await (const chunk of answer) text += chunk;
      return text;
    };
    const apiServer = issue(clients, { commonName: 'kube-apiserver' });
    const stranger = issue(createAuthority('clients'), { commonName: 'kube-apiserver' });
    for (const round of ['first', 'renewed']) {
      assert.equal(await asked(apiServer), 'answered', round);
      await assert.rejects(asked(), round);
      await assert.rejects(asked(stranger), round);
      const { cert } = certificate.current;
      write(newIdentity());
      await until(() => !certificate.current.cert.equals(cert));
    }
  });

  it('reports that the port is taken', async () => {
    await start(new World().app);
    const certificate = new FileCertificate({ ...files, clock: systemClock, log: noLog });
    const options = { app: new World().app, certificate, clock: systemClock, log: noLog };
    await assert.rejects(startAdmissionServer({ ...options, host: '127.0.0.1', port: server.port }), {
      code: 'PortUnavailable',
    });
  });
});
