import assert from 'node:assert/strict';
import { type ConnectionAuth, type Credentials, staticCredentials } from '../../../src/kube/credentials.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import { Transport } from '../../../src/kube/transport.ts';
import { advanceIo, until } from '../../support/io.ts';
import { type Answer, type Script, ScriptedApiserver } from '../../support/scripted-apiserver.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

describe('transport', () => {
  let clock: SimulatedClock;
  let server: ScriptedApiserver;
  let transport: Transport;

  async function start(script: Script, credentials: Partial<Credentials> = {}): Promise<void> {
    clock = new SimulatedClock();
    server = await ScriptedApiserver.start(script);
    transport = new Transport(
      { ...staticCredentials({ server: server.url }), ...credentials },
      { clock, random: () => 0.5 },
    );
  }

  afterEach(() => Promise.all([transport.close(), server.close()]));

  const get = (path = '/x') => transport.request({ method: 'GET', path });
  const post = (body: unknown = {}) => transport.request({ method: 'POST', path: '/x', body });

  for (const spec of [
    { method: 'GET', path: '/x' },
    { method: 'PATCH', path: '/x', body: {} },
    { method: 'DELETE', path: '/x', body: { kind: 'DeleteOptions' } },
  ] as const) {
    it(`sends 100 ${spec.method} calls in sequence over its existing connections`, async () => {
      await start((_request, answer) => answer.json(200, { ok: true }));
      for (let i = 0; i < 100; i++) assert.deepEqual(await transport.request(spec), { ok: true });
      assert.ok(server.connections <= 2, `${server.connections} connections`);
    });
  }

  it('sends 100 concurrent calls over at most 10 connections', async () => {
    await start((_request, answer) => setImmediate(() => answer.json(200, {})));
    await Promise.all(Array.from({ length: 100 }, () => get()));
    assert.ok(server.connections <= 10, `${server.connections} connections`);
  });

  it('keeps calls possible while many watches are open', async () => {
    await start((request, answer) => (request.path === '/watch' ? answer.open() : answer.json(200, {})));
    const abort = new AbortController();
    const spec = { path: '/watch', signal: abort.signal, headTimeoutMs: 1_000 };
    await Promise.all(Array.from({ length: 30 }, () => transport.stream(spec)));
    assert.deepEqual(await get(), {});
    abort.abort();
  });

  it('keeps quick calls possible while more slow ones hang than there are quick connections', async () => {
    await start((request, answer) => (request.path === '/slow' ? undefined : answer.json(200, {})));
    const slow = Array.from({ length: 20 }, () => transport.request({ method: 'POST', path: '/slow', pool: 'slow' }));
    const cut = Promise.all(slow.map((call) => assert.rejects(call)));
    await until(() => server.requests.length === 20);
    assert.deepEqual(await get(), {});
    await server.close();
    await cut;
  });

  it('keeps urgent calls possible while others hang on all of their connections', async () => {
    await start((request, answer) => (request.path === '/hangs' ? undefined : answer.json(200, {})));
    const hang = (pool: 'quick' | 'slow', count: number): Promise<unknown>[] =>
      Array.from({ length: count }, () => transport.request({ method: 'POST', path: '/hangs', pool }));
    const others = [...hang('quick', 10), ...hang('slow', 32)];
    const cut = Promise.all(others.map((call) => assert.rejects(call)));
    await until(() => server.requests.length === 42);
    assert.deepEqual(await transport.request({ method: 'DELETE', path: '/urgent', pool: 'urgent' }), {});
    await server.close();
    await cut;
  });

  it('sends the path below the prefix of the server, with escaped queries and without undefined ones', async () => {
    await start((_request, answer) => answer.json(200, {}));
    const prefixed = new Transport(staticCredentials({ server: `${server.url}/k8s/c1/` }), { clock });
    await prefixed.request({ method: 'GET', path: '/api/v1', query: { a: 'x=1&y', b: undefined, c: true } });
    await prefixed.close();
    const [request] = server.requests;
    assert.equal(request?.path, '/k8s/c1/api/v1');
    assert.equal(String(request?.query), 'a=x%3D1%26y&c=true');
  });

  const retried: [name: string, fail: (answer: Answer) => void, read: boolean, write: boolean][] = [
    ['500', (answer) => answer.status(500), true, false],
    ['503', (answer) => answer.status(503), true, false],
    ['429', (answer) => answer.status(429), true, false],
    ['429 with Retry-After', (answer) => answer.status(429, '', { 'retry-after': '1' }), true, true],
    ['503 with Retry-After', (answer) => answer.status(503, '', { 'retry-after': '1' }), true, true],
    ['500 with Retry-After', (answer) => answer.status(500, '', { 'retry-after': '1' }), true, false],
    ['a reset', (answer) => answer.reset(), true, false],
    ['404', (answer) => answer.status(404), false, false],
    ['409', (answer) => answer.status(409), false, false],
  ];
  for (const [name, fail, read, write] of retried) {
    it(`after ${name} sends ${read ? 'a read' : 'no read'} and ${write ? 'a write' : 'no write'} again`, async () => {
      await start((request, answer) => {
        const tries = server.requests.filter(({ method }) => method === request.method).length;
        if (tries === 1) fail(answer);
        else answer.json(200, {});
      });
      const settled = Promise.allSettled([get(), post()]);
      await advanceIo(clock, 3_000);
      const [getting, posting] = await settled;
      assert.equal(getting.status, read ? 'fulfilled' : 'rejected');
      assert.equal(posting.status, write ? 'fulfilled' : 'rejected');
    });
  }

  it('rejects after four attempts', async () => {
    await start((_request, answer) => answer.status(503));
    const failing = assert.rejects(get(), ApiError);
    await advanceIo(clock, 20_000);
    await failing;
    assert.equal(server.requests.length, 4);
  });

  it('waits for the delay of the server', async () => {
    await start((_request, answer) => {
      if (server.requests.length === 1) answer.status(429, '', { 'retry-after': '5' });
      else answer.json(200, {});
    });
    const getting = get();
    await advanceIo(clock, 4_900);
    assert.equal(server.requests.length, 1);
    await advanceIo(clock, 500);
    await getting;
  });

  it('does not wait beyond the time limit of the call', async () => {
    await start((_request, answer) => answer.status(429, '', { 'retry-after': '60' }));
    await assert.rejects(get(), (error) => error instanceof ApiError && error.retryAfterMs === 60_000);
  });

  it('reports an unknown outcome if the connection breaks', async () => {
    await start((_request, answer) => answer.reset());
    await assert.rejects(post(), (error) => error instanceof TransportError && !error.notSent);
  });

  it('rejects if the server does not answer within 30 s', async () => {
    await start(() => {});
    const failing = assert.rejects(get(), (error) => error instanceof TransportError && !error.notSent);
    await advanceIo(clock, 31_000, 1_000);
    await failing;
  });

  it('ends a call, waiting or running, with the reason of its signal', async () => {
    await start((request, answer) => {
      if (request.path === '/retry') answer.status(503);
    });
    for (const path of ['/retry', '/hang']) {
      const abort = new AbortController();
      const calling = transport.request({ method: 'GET', path, signal: abort.signal });
      await until(() => server.requests.some((request) => request.path === path));
      await advanceIo(clock, 0);
      abort.abort(new Error('shutting down'));
      await assert.rejects(calling, /shutting down/);
    }
  });

  it('rejects an answer that is not JSON', async () => {
    await start((_request, answer) => answer.raw(200, '<html>'));
    await assert.rejects(post(), TransportError);
  });

  it('reads the credentials again after ten seconds and after 401', async () => {
    let token = 'one';
    const connectionAuth = (): Promise<ConnectionAuth> =>
      Promise.resolve({ tls: {}, headers: { authorization: token } });
    await start(
      (request, answer) =>
        request.headers.authorization === 'revoked' ? answer.status(401, 'Unauthorized') : answer.json(200, {}),
      { connectionAuth },
    );
    const used = () => server.requests.map(({ headers }) => headers.authorization);
    await get();
    token = 'revoked';
    await get();
    await clock.advance(10_001);
    await assert.rejects(get(), { code: 401 });
    token = 'three';
    await get();
    assert.deepEqual(used(), ['one', 'one', 'revoked', 'three']);
  });

  it('reports that nothing was sent if the credentials are unavailable', async () => {
    await start(() => {}, { connectionAuth: () => Promise.reject(new Error('plugin failed')) });
    await assert.rejects(
      transport.request({ method: 'POST', path: '/x', retry: 'never' }),
      (error) => error instanceof TransportError && error.notSent && /plugin failed/.test(error.message),
    );
  });

  it('closes old connections within 5 s after an update, and rejects an update to another server', async () => {
    await start((request, answer) => {
      if (request.path === '/watch') answer.open();
      else if (request.path !== '/hang') answer.json(200, {});
    });
    const { signal } = new AbortController();
    const chunks = await transport.stream({ path: '/watch', signal, headTimeoutMs: 1_000 });
    const watching = assert.rejects(async () => {
      for await (const _ of chunks);
    }, TransportError);
    const hanging = assert.rejects(transport.request({ method: 'POST', path: '/hang', body: {} }), TransportError);
    await until(() => server.requests.length === 2);
    transport.update(staticCredentials({ server: server.url, token: 'new' }));
    await watching;
    await get();
    assert.equal(server.requests.at(-1)?.headers.authorization, 'Bearer new');
    await advanceIo(clock, 5_000);
    await hanging;
    await until(() => server.openConnections === 1);
    assert.throws(() => transport.update(staticCredentials({ server: 'https://elsewhere' })), {
      code: 'ServerChanged',
    });
  });

  it('rejects calls once closed', async () => {
    await start((_request, answer) => answer.json(200, {}));
    await get();
    await transport.close();
    await assert.rejects(get(), (error) => error instanceof TransportError && error.notSent);
    await until(() => server.openConnections === 0);
  });
});
