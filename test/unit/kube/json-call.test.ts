import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createAuthority, issue } from '../../../sandbox/pki.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { listen, listenHttp } from '../../../src/kit/listen.ts';
import { CallError, JsonCaller } from '../../../src/kube/json-call.ts';

describe('a JSON call', () => {
  let server: Server;
  let url: URL;
  let caller: JsonCaller;

  before(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method, url, headers } = request;
        if (url?.startsWith('/hang')) return;
        const { 'content-type': type, accept } = headers;
        const said = { method, url, type, accept, body: `${Buffer.concat(chunks)}` };
        response.writeHead(url?.startsWith('/no') ? 404 : 200, { 'retry-after': '7' });
        response.end(JSON.stringify(said));
      });
    });
    url = new URL(`http://127.0.0.1:${(await listenHttp(server, '127.0.0.1', 0)).port}/`);
  });
  after(() => server.close());
  beforeEach(() => {
    caller = new JsonCaller({}, systemClock, { connections: 1 });
  });
  afterEach(() => caller.close());

  const call = (path: string, rest: Partial<Parameters<JsonCaller['call']>[0]> = {}) =>
    caller.call({ method: 'POST', url: new URL(path, url), headers: {}, body: { a: 1 }, ...rest });
  const failure = async (calling: Promise<unknown>): Promise<CallError> => {
    const error = await calling.catch((reason: unknown) => reason);
    return error instanceof CallError ? error : assert.fail('there was an answer');
  };

  it('sends JSON and returns the status, headers, and body of any answer', async () => {
    const { status, headers, body } = await call('/no/such?x=1');
    assert.equal(status, 404);
    assert.equal(headers['retry-after'], '7');
    const both = { type: 'application/json', accept: 'application/json' };
    assert.deepEqual(JSON.parse(`${body}`), { method: 'POST', url: '/no/such?x=1', ...both, body: '{"a":1}' });
  });

  it('distinguishes a late call from one without a connection', async () => {
    const late = failure(call('/hang', { timeoutMs: 100 }));
    const waiting = failure(call('/', { timeoutMs: 50 }));
    const of = ({ failure, timedOut, notSent, message }: CallError) => ({ failure, timedOut, notSent, message });
    const isLate = { timedOut: true, notSent: false };
    const unsent = { failure: 'unsent', ...isLate, message: 'POST /: no connection within 50 ms' };
    assert.deepEqual(of(await waiting), unsent);
    assert.deepEqual(of(await late), { failure: 'cut', ...isLate, message: 'POST /hang: no answer within 100 ms' });
  });

  it('sends nothing of a call that ended while it waited for a connection', async () => {
    const late = failure(call('/hang', { timeoutMs: 100 }));
    await failure(call('/', { timeoutMs: 10 }));
    await late;
    const { body } = await call('/after');
    assert.equal(JSON.parse(`${body}`).url, '/after');
  });

  it('reports that nothing was sent if the connection is refused', async () => {
    const { failure: how, notSent } = await failure(call('/', { url: new URL('http://127.0.0.1:1/') }));
    assert.deepEqual([how, notSent], ['unsent', true]);
  });

  it('reads at most the limit of an answer', async () => {
    assert.equal((await failure(call('/', { maxAnswerBytes: 10 }))).failure, 'tooLarge');
  });

  it('ends with the reason of its signal', async () => {
    const abort = new AbortController();
    const calling = call('/hang', { signal: abort.signal });
    abort.abort(new Error('enough'));
    await assert.rejects(calling, /enough/);
    await assert.rejects(call('/', { signal: abort.signal }), /enough/);
  });
});

it('a JSON call speaks HTTP/1.1 to a server that prefers HTTP/2', async () => {
  const authority = createAuthority('test-ca');
  const { certificate: cert, key } = issue(authority, { commonName: 'server', serves: ['127.0.0.1'] });
  const server = createSecureServer({ cert, key, allowHTTP1: true, ALPNProtocols: ['h2', 'http/1.1'] });
  server.on('request', ({ httpVersion }, response) => response.end(httpVersion));
  await listen(server, '127.0.0.1', 0);
  const caller = new JsonCaller({ ca: authority.certificate }, systemClock);
  const { port } = server.address() as AddressInfo;
  const { body } = await caller.call({ method: 'GET', url: new URL(`https://127.0.0.1:${port}/`), headers: {} });
  caller.close();
  server.close();
  assert.equal(`${body}`, '1.1');
});
