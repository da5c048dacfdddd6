import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener, ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { createAuthority, type Identity, issue } from '../../../sandbox/pki.ts';
import { FileCertificate } from '../../../src/admission/certificate.ts';
import { type AdmissionServer, startAdmissionServer } from '../../../src/admission/server.ts';
import { type Clock, systemClock } from '../../../src/kit/clock.ts';
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

const call = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const postHead = `POST ${paths.validatePod} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;

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
  const dial = (options: ConnectionOptions = {}): TLSSocket => {
    const to = { host: '127.0.0.1', port: server.port, ca: authority.certificate, servername: 'localhost' };
    const socket = connect({ ...to, ...options });
    // The server may reset the connection.
    socket.on('error', () => {});
    return socket;
  };
  /** What the connection receives, from now on. */
  const textFrom = (socket: TLSSocket): { readonly received: string } => {
    const text = { received: '' };
    socket.on('data', (chunk) => {
      text.received += chunk;
    });
    return text;
  };
  const dialed = async (options?: ConnectionOptions): Promise<TLSSocket> => {
    const socket = dial(options);
    await once(socket, 'secureConnect');
    return socket;
  };
  /** A connection that the server has accepted, before its first call. */
  const idleClient = async () => {
    const socket = await dialed();
    const text = textFrom(socket);
    await settleIo();
    return { call: () => void socket.write(call), text };
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
    const old = dial({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    await assert.rejects(once(old, 'secureConnect'));
    const noise = await dialed();
    noise.end('\u0016\u0003 what is this\r\n\r\n');
    let text = '';
    for await (const chunk of noise) text += chunk;
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.equal((await post()).status, 200);
  });

  it('closes the connection of a body that is too large or ends early, and continues', async () => {
    await start(new World().app);
    const chunks = `10000\r\n${'x'.repeat(0x10000)}\r\n`.repeat(70);
    for (const [bytes, status] of [
      ['Content-Length: 10000000\r\n\r\n{}', 413],
      [`Transfer-Encoding: chunked\r\n\r\n${chunks}`, 413],
      ['Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{}', 400],
      ['Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\u001f\u008b', 415],
    ] as const) {
      const socket = await dialed();
      const text = textFrom(socket);
      socket.write(`${postHead}${bytes}`);
      await once(socket, 'close');
      assert.ok(text.received.startsWith(`HTTP/1.1 ${status} `), text.received);
    }
    const early = await dialed();
    early.write(`${postHead}Content-Length: 100\r\n\r\n{`);
    early.destroy();
    assert.equal((await post()).status, 200);
  });

  it('serves a new certificate to new connections without failing a request', async () => {
    await start(new World().app);
    const { peer: before } = await post();
    const stop = Promise.withResolvers<void>();
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
      const fresh = await dialed();
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
    assert.match(client.text.received, /^HTTP\/1\.1 200 OK\r\n.*\r\nlate$/s);
  });

  it('delivers pending answers when it closes, and accepts no new calls', async () => {
    const entered = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
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
    await dialed();
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
      assert.equal(client.text.received.endsWith('late'), answers);
    });
  }

  describe('under a flood', function () {
    this.timeout(30_000);
    const sockets: Socket[] = [];
    const open = (localAddress: string): Socket => {
      const socket = connectTcp({ host: '127.0.0.1', port: server.port, localAddress });
      socket.on('error', () => {});
      sockets.push(socket);
      return socket;
    };
    const openTls = (localAddress: string): Promise<TLSSocket> => dialed({ socket: open(localAddress) });
    const unfinished = `${postHead}Content-Length: 4194304\r\n\r\n{`;
    const world = new World();
    beforeEach(() => start(world.app));
    afterEach(() => {
      for (const socket of sockets.splice(0)) socket.destroy();
    });

    it('with 1,200 silent connections of three other addresses: still answers a new one', async () => {
      await Promise.all(
        Array.from({ length: 1_200 }, (_, index) => once(open(`127.0.0.${2 + (index % 3)}`), 'connect')),
      );
      assert.equal((await post()).status, 200);
    });

    it('with idle connections of the address that the API server has: evicts some for another one, and no call in flight', async () => {
      const { template } = world;
      const entered = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
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

    it('with connections of one address: closes those beyond its 512 before TLS', async () => {
      const closed: Socket[] = [];
      const opened = Array.from({ length: 520 }, () => open('127.0.0.2'));
      for (const socket of opened) socket.once('close', () => closed.push(socket)).resume();
      await until(() => closed.length >= 8);
      assert.ok(closed.every((socket) => socket.bytesRead === 0));
      assert.equal((await post()).status, 200);
    });

    it('with connections of the address that the API server has: closes new ones and answers it on those that it has', async () => {
      assert.equal((await post()).status, 200);
      const closed: Socket[] = [];
      for (let index = 0; index < 520; index++) {
        const socket = open('127.0.0.1');
        socket.once('close', () => closed.push(socket)).resume();
      }
      await until(() => closed.length >= 9);
      assert.equal((await post()).status, 200);
    });

    it('with unfinished bodies: keeps at most 64 MiB, and evicts some for a caller with few', async () => {
      const before = world.overloads.length;
      const texts: { readonly received: string }[] = [];
      for (let index = 0; index < 24; index++) {
        const socket = await openTls(`127.0.0.${2 + (index % 4)}`);
        texts.push(textFrom(socket));
        socket.write(unfinished);
      }
      const refused = (): number => texts.filter(({ received }) => received.startsWith('HTTP/1.1 503')).length;
      await until(() => refused() === 8);
      assert.deepEqual(world.overloads.slice(before), Array(8).fill('bytes'));
      assert.equal((await post()).status, 200);
    });

    it('with unfinished bodies of the address that the API server has: answers it, whose body is smaller', async () => {
      for (let index = 0; index < 16; index++) {
        const socket = await openTls('127.0.0.1');
        socket.write(unfinished);
      }
      const extra = await openTls('127.0.0.1');
      extra.write(unfinished);
      const [refused] = (await once(extra, 'data')) as [Buffer];
      assert.match(`${refused}`, /^HTTP\/1.1 503/, 'all room is taken');
      assert.equal((await post()).status, 200);
    });

    it('with a body of single bytes: uses memory for the body, not for the pieces', async () => {
      const socket = await openTls('127.0.0.2');
      const text = textFrom(socket);
      socket.setNoDelay(true);
      socket.write(`${postHead}Transfer-Encoding: chunked\r\n\r\n`);
      for (const byte of body) socket.write(`1\r\n${byte}\r\n`);
      socket.write('0\r\n\r\n');
      await until(() => text.received.includes('"allowed":true'));
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
      const socket = await dialed();
      socket.resume();
      socket.write(call.repeat(500));
      await once(socket, 'close');
      assert.equal(calls, 1);
    });
  }

  it('answers a call that arrives right after the previous answer', async () => {
    await start((_request, response) => response.end('answered'));
    const socket = await dialed();
    const text = textFrom(socket);
    socket.write(call.repeat(2));
    await until(() => text.received.split('answered').length === 3);
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
