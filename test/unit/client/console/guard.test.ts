import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { ClusterConnection } from '../../../../src/client/cluster-connection.ts';
import type { Handler } from '../../../../src/client/console/call.ts';
import { assetHeaders, guard } from '../../../../src/client/console/guard.ts';
import { type ConsoleServer, startConsole } from '../../../../src/client/console/server.ts';
import { paths, tokenHeader } from '../../../../src/client/console/wire.ts';
import { until } from '../../../support/io.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const token = 'a'.repeat(43);
const origin = { port: 7340, token };
const mine = { host: '127.0.0.1:7340', [tokenHeader]: token };
const tokenOf = (value: string) => ({ ...mine, [tokenHeader]: value });

const refused: readonly (readonly [
  what: string,
  status: number,
  method: string,
  url: string,
  headers: IncomingHttpHeaders,
])[] = [
  ['no Host', 421, 'GET', '/', {}],
  ['a name that resolves to this machine', 421, 'GET', '/', { host: 'rebinding.example:7340' }],
  ['localhost, which is not the address', 421, 'GET', '/', { host: 'localhost:7340' }],
  ['another port', 421, 'GET', paths.start, { ...mine, host: '127.0.0.1' }],
  ['no token', 401, 'GET', paths.start, { host: mine.host }],
  ['an empty token', 401, 'GET', paths.start, tokenOf('')],
  ['a part of the token', 401, 'GET', paths.start, tokenOf(token.slice(1))],
  ['a longer token', 401, 'GET', paths.start, tokenOf(`${token}a`)],
  ['a token twice', 401, 'GET', paths.start, tokenOf(`${token}, ${token}`)],
  ['the token in the query', 401, 'GET', `${paths.start}?token=${token}`, { host: mine.host }],
  ['the token as a cookie', 401, 'GET', paths.start, { host: mine.host, cookie: `${tokenHeader}=${token}` }],
  ['a page of another site', 403, 'GET', paths.start, { ...mine, 'sec-fetch-site': 'cross-site' }],
  ['a page of the same site', 403, 'POST', paths.run, { ...mine, 'sec-fetch-site': 'same-site' }],
  ['a link from elsewhere', 403, 'GET', paths.journal, { ...mine, 'sec-fetch-site': 'none' }],
  ['a foreign Origin', 403, 'POST', paths.run, { ...mine, origin: 'https://evil.example' }],
  ['the Origin of a sandboxed frame', 403, 'POST', paths.run, { ...mine, origin: 'null' }],
  ['another port as Origin', 403, 'POST', paths.run, { ...mine, origin: 'http://127.0.0.1:80' }],
  ['a preflight', 405, 'OPTIONS', paths.run, { ...mine, origin: 'https://evil.example' }],
  ['a preflight of the page', 405, 'OPTIONS', '/', mine],
  ['a form', 401, 'POST', paths.run, { host: mine.host, 'content-type': 'application/x-www-form-urlencoded' }],
  ['a read of what only acts', 405, 'GET', paths.run, mine],
  ['a post of the page', 405, 'POST', '/', mine],
  ['TRACE', 405, 'TRACE', paths.start, mine],
  ['an unknown call', 404, 'GET', '/api/proxy', mine],
  ['a call with a slash', 404, 'GET', `${paths.start}/`, mine],
  ['a field of every object', 404, 'GET', '/api/../constructor', mine],
  ['an unknown page', 404, 'GET', '/admin', mine],
  ['a folder above', 404, 'GET', '/../main.js', mine],
  ['an escaped folder above', 404, 'GET', '/%2e%2e/main.js', mine],
  ['a map of sources', 404, 'GET', '/main.js.map', mine],
  ['a URL of a proxy', 404, 'GET', 'http://127.0.0.1:7340/api/start', mine],
  ['two slashes', 404, 'GET', '//evil.example/main.js', mine],
  ['a request with more parts', 404, 'GET', '/requests/a/b/c/d', mine],
];

describe('the guard of the console', () => {
  for (const [what, status, method, url, headers] of refused) {
    it(`refuses ${what} with ${status}`, () => {
      const verdict = guard({ method, url, headers }, origin);
      assert.equal('status' in verdict && verdict.status, status);
    });
  }

  it('passes a call of its own page on, with its query', () => {
    const own = { ...mine, origin: 'http://127.0.0.1:7340', 'sec-fetch-site': 'same-origin' };
    for (const headers of [mine, own]) {
      const verdict = guard({ method: 'GET', url: `${paths.live}?namespace=a%26b`, headers }, origin);
      assert.ok('path' in verdict);
      assert.deepEqual([verdict.path, verdict.query.get('namespace')], [paths.live, 'a&b']);
    }
  });

  it('gives every path of the page the same document, to everyone who asks for it at the right address', () => {
    const asked = ['/', '/?x', '/ask', '/mine', '/requests/payments/PodAccessRequest/shell-x7k2p', '/health'];
    for (const url of asked)
      assert.deepEqual(guard({ method: 'GET', url, headers: { host: mine.host } }, origin), { asset: '/index.html' });
    assert.deepEqual(guard({ method: 'HEAD', url: '/player', headers: mine }, origin), { asset: '/player.html' });
  });

  it('lets only the player compile WebAssembly', () => {
    assert.match(
      assetHeaders('/player.html')['content-security-policy'] ?? '',
      /script-src 'self' 'wasm-unsafe-eval';/,
    );
    assert.equal(assetHeaders('/index.html')['content-security-policy'], undefined);
  });
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

describe('the server of the console', () => {
  const clock = new SimulatedClock();
  const zipped = gzipSync('<title>drawbridge</title>');
  let server: ConsoleServer;
  let end: AbortController;
  let firstCalls: number;
  let handlers: Record<string, Handler>;

  beforeEach(async () => {
    [end, firstCalls, handlers] = [new AbortController(), 0, {}];
    server = await startConsole({
      connection: {} as ClusterConnection,
      clock,
      port: 0,
      token,
      assets: { '/index.html': zipped.toString('base64') },
      handlers,
      signal: end.signal,
      onFirstCall: () => {
        firstCalls += 1;
      },
    });
  });
  afterEach(() => server.close());

  const send = (path: string, options: { method?: string; headers?: IncomingHttpHeaders } = {}) => {
    const { method = 'GET', headers = { [tokenHeader]: token } } = options;
    return request({ host: '127.0.0.1', port: server.port, path, method, headers });
  };
  async function call(path: string, options: Parameters<typeof send>[1] = {}, body?: string): Promise<Answer> {
    const sent = send(path, options);
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return { status: response.statusCode ?? 0, headers: response.headers, body: text };
  }
  /** A handler whose calls stay open until `finish`. */
  const waiting = (): { readonly open: () => number; finish(): void } => {
    const done = Promise.withResolvers<void>();
    let open = 0;
    const handler: Handler = async ({ signal }) => {
      open += 1;
      await Promise.race([done.promise, once(signal, 'abort')]);
      open -= 1;
    };
    for (const path of Object.values(paths)) handlers[path] = handler;
    return { open: () => open, finish: done.resolve };
  };

  it('sends headers on every answer that keep other pages out', async () => {
    handlers[paths.start] = ({ json }) => json({});
    for (const [path, status] of [
      ['/', 200],
      ['/x', 404],
      [paths.start, 200],
    ] as const) {
      const answer = await call(path);
      assert.equal(answer.status, status);
      const {
        date: _,
        connection: _c,
        'keep-alive': _k,
        'content-type': _t,
        'content-length': _l,
        ...rest
      } = answer.headers;
      const { 'transfer-encoding': _e, ...safe } = rest;
      assert.deepEqual(safe, {
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      });
    }
  });

  it('sends files of the page as the build packed them, or unpacked', async () => {
    const packed = await call('/mine', { headers: { 'accept-encoding': 'br, gzip' } });
    assert.deepEqual(
      [packed.headers['content-encoding'], packed.headers['content-length']],
      ['gzip', `${zipped.length}`],
    );
    assert.equal((await call('/mine')).body, '<title>drawbridge</title>');
    assert.equal((await call('/', { method: 'HEAD' })).body, '');
    assert.equal((await call('/main.js')).status, 404);
  });

  it('reads no more of a body than the call takes', async () => {
    handlers[paths.run] = async ({ read, json }) => json({ bytes: (await read(1024)).length });
    assert.equal((await call(paths.run, { method: 'POST' }, 'x'.repeat(1024))).body, '{"bytes":1024}');
    const { status, body } = await call(paths.run, { method: 'POST' }, 'x'.repeat(1025));
    assert.deepEqual(
      [status, JSON.parse(body).message],
      [413, 'the body is too large; the console takes at most 1024 bytes'],
    );
  });

  it('reads nothing of a giant body without the token', async () => {
    const sent = send(paths.run, { method: 'POST', headers: {} });
    sent.on('error', () => undefined);
    sent.write('x'.repeat(1_000_000));
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    assert.deepEqual([response.statusCode, response.headers.connection], [401, 'close']);
    sent.destroy();
  });

  it('takes 16 calls of a path at once, and then again', async () => {
    const calls = waiting();
    const open = Array.from({ length: 16 }, () => call(paths.run, { method: 'POST' }));
    await until(() => calls.open() === 16);
    const { status, body } = await call(paths.run, { method: 'POST' });
    assert.equal(status, 429);
    assert.match(body, /close its other tabs/);
    calls.finish();
    await Promise.all(open);
    assert.equal((await call(paths.run, { method: 'POST' })).status, 200);
  });

  it('takes 64 connections at once', async () => {
    const sockets = Array.from({ length: 80 }, () => connect(server.port, '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) socket.on('error', () => undefined).on('close', () => (closed += 1));
    await until(() => closed === 16);
    for (const socket of sockets) socket.destroy();
  });

  it('aborts a call that the page closes, and all when the console ends', async () => {
    const calls = waiting();
    const closed = send(paths.live);
    closed.on('error', () => undefined).end();
    const other = send(paths.cast);
    other.on('error', () => undefined).end();
    await until(() => calls.open() === 2);
    closed.destroy();
    await until(() => calls.open() === 1);
    end.abort();
    await until(() => calls.open() === 0);
  });

  it('says why a call fails, and cuts a stream that has begun', async () => {
    handlers[paths.start] = () => Promise.reject(new Error('no \u001b[31m cluster'));
    const { status, body } = await call(paths.start);
    assert.deepEqual([status, JSON.parse(body)], [502, { message: 'no ?[31m cluster' }]);
    handlers[paths.cast] = async ({ line }) => {
      await line({ a: 1 });
      throw new Error('lost');
    };
    await assert.rejects(call(paths.cast), /aborted/);
  });

  it('counts every call but the live stream as use, for as long as it is open', async () => {
    const calls = waiting();
    await clock.advance(1000);
    assert.equal(server.idleMs(), 1000);
    const stream = send(paths.live);
    stream.on('error', () => undefined).end();
    await until(() => calls.open() === 1);
    assert.deepEqual([server.idleMs(), firstCalls], [1000, 1]);
    await call('/');
    await call(paths.start, { headers: {} });
    assert.equal(server.idleMs(), 1000);
    const recording = call(paths.cast);
    await until(() => calls.open() === 2);
    await clock.advance(5000);
    assert.equal(server.idleMs(), 0);
    calls.finish();
    await recording;
    await clock.advance(700);
    assert.deepEqual([server.idleMs(), firstCalls], [700, 1]);
  });
});
