import assert from 'node:assert/strict';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { until } from '../../../../sandbox/wait.ts';
import { newSignedPair } from '../../../../src/certificates/material.ts';
import { HttpComponentClient } from '../../../../src/inventory/http/http-component-client.ts';
import type { Reply } from '../../../../src/inventory/ports.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { listen } from '../../../../src/kit/listen.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { registrationOf } from '../../../support/inventory/registrations.ts';

const request = {
  protocol: 'v1' as const,
  run: { id: 'u.network.7', seq: 7, attempt: 0, deadline: '2026-11-21T09:00:00Z', reasons: [] },
  operation: 'reconcile' as const,
  component: 'network',
  entry: { url: 'https://api.test/e', id: 'u', resourceVersion: '1' },
  auth: { token: 'run-token', expires: '2026-11-21T09:10:00Z' },
  callback: 'https://callbacks.test/v1/runs/u.network.7',
};

const body = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};
const ok = (value: unknown): string => `HTTP/1.1 200 OK\r\n${body(value)}`;

/** A connection accepts the next call one event loop turn after an answer. */
const isKept = (): Promise<void> => setImmediate();

describe('the HTTP client of components', () => {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const client = new HttpComponentClient({
    tokens: { forCall: async (component) => `call-${component}` },
    clock: systemClock,
    allowLoopbackHttp: true,
  });
  let received: string[] = [];

  async function listening(server: Server, scheme = 'http'): Promise<string> {
    servers.push(server);
    await listen(server, '127.0.0.1', 0);
    return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function serve(answerTo: (socket: Socket, nth: number) => void): Promise<string> {
    received = [];
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      let text = '';
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        const [head = '', rest] = text.split('\r\n\r\n');
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (rest === undefined || rest.length < length) return;
        received.push(text);
        text = '';
        answerTo(socket, received.length);
      });
    });
    return listening(server);
  }

  const call = (url: string, rest: Partial<Registration> = {}, signal = new AbortController().signal): Promise<Reply> =>
    client.invoke(registrationOf('network', { endpoint: { url }, timeoutMs: 400, ...rest }), request, signal);

  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers.splice(0)) server.close();
    sockets.clear();
  });
  after(() => client.close());

  it('posts the request with the call token and reads the outcome', async () => {
    const url = await serve((socket) => socket.write(ok({ outcome: 'Done', run: 'u.network.7' })));
    assert.deepEqual(await call(`${url}/base/`), { kind: 'outcome', outcome: { outcome: 'Done' } });
    assert.match(received[0] ?? '', /^POST \/base\/v1\/reconcile HTTP\/1.1\r\n/);
    assert.match(received[0] ?? '', /authorization: Bearer call-network\r\n/i);
    assert.deepEqual(JSON.parse(received[0]?.split('\r\n\r\n')[1] ?? ''), request);
  });

  const cases: Record<string, [answer: (socket: Socket) => void, expected: Partial<Reply> & { code?: string }]> = {
    'invalid JSON in a 200': [(s) => s.write(ok('{"outcome"')), { kind: 'failed', code: 'NotJson' }],
    'an answer that is not HTTP': [(s) => s.write('hello\r\n\r\n'), { kind: 'failed', code: 'NotJson' }],
    'another run': [(s) => s.write(ok({ outcome: 'Done', run: 'u.network.6' })), { kind: 'failed', code: 'WrongRun' }],
    'an unknown outcome': [(s) => s.write(ok({ outcome: 'Perfect' })), { kind: 'failed', code: 'InvalidOutcome' }],
    'an outcome of another operation': [
      (s) => s.write(ok({ outcome: 'Deleted' })),
      { kind: 'failed', code: 'InvalidOutcome' },
    ],
    'a truncated body': [
      (s) => s.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"outcome":'),
      { kind: 'failed', code: 'Cut' },
    ],
    'a connection closed without an answer': [(s) => s.end(), { kind: 'failed', code: 'Cut' }],
    'a body that is too large': [
      (s) => s.write(ok(JSON.stringify({ outcome: 'Done', message: 'x'.repeat(200_000) }))),
      { kind: 'failed', code: 'TooLarge' },
    ],
    'an endless body': [
      (s) => s.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(200_000)}`),
      { kind: 'failed', code: 'TooLarge' },
    ],
    'endless headers': [
      (s) => s.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`),
      { kind: 'failed', code: 'TooLarge' },
    ],
    'a hang': [() => undefined, { kind: 'failed', code: 'Timeout' }],
    'a hang within the answer': [
      (s) => s.write('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{'),
      { kind: 'failed', code: 'Timeout' },
    ],
    'a rejection of the caller': [
      (s) => s.write(`HTTP/1.1 401 Unauthorized\r\n${body('who?')}`),
      { kind: 'failed', code: 'Refused' },
    ],
    'a redirect': [
      (s) => s.write(`HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n${body('')}`),
      { kind: 'failed', code: 'UnexpectedStatus' },
    ],
    'a 500': [(s) => s.write(`HTTP/1.1 500 Oh\r\n${body('')}`), { kind: 'failed', code: 'UnexpectedStatus' }],
    'a 202': [
      (s) => s.write(`HTTP/1.1 202 Accepted\r\n${body({ leaseSeconds: 30 })}`),
      { kind: 'accepted', heartbeatTimeoutMs: 30_000 },
    ],
    'a 202 whose outcome is null': [
      (s) => s.write(`HTTP/1.1 202 Accepted\r\n${body({ outcome: null })}`),
      { kind: 'accepted', heartbeatTimeoutMs: undefined },
    ],
    'a 202 without a body': [
      (s) => s.write(`HTTP/1.1 202 Accepted\r\n${body('')}`),
      { kind: 'accepted', heartbeatTimeoutMs: undefined },
    ],
    'a 503 with Retry-After': [
      (s) => s.write(`HTTP/1.1 503 Busy\r\nretry-after: 7\r\n${body('')}`),
      { kind: 'notAccepted', code: 'Busy', retryAfterMs: 7000 },
    ],
    'a 429': [(s) => s.write(`HTTP/1.1 429 Slow\r\n${body('')}`), { kind: 'notAccepted', code: 'Busy' }],
  };
  for (const [what, [answer, expected]] of Object.entries(cases)) {
    it(`maps ${what} to ${expected.code ?? expected.kind}`, async () => {
      const reply = await call(await serve(answer));
      assert.deepEqual({ ...reply, message: undefined }, { ...expected, message: undefined });
    });
  }

  for (const [what, answer, text] of [
    ['a page', ok('<html>\r\n\u001b[31mred'), /answer is not JSON; it starts with `<html> \[31mred`; check/],
    ['an empty 200', ok(''), /answer is not JSON; it is empty; check/],
    ['a duplicate key', ok('{"a":1,"a":2}'), /^the component's answer is invalid: /],
    [
      'a 401',
      `HTTP/1.1 401 No\r\n${body('who?\n')}`,
      /\(401\): who\?; check how it validates the token of the server, and that spec\.endpoint leads to the component$/,
    ],
    [
      'a 400',
      `HTTP/1.1 400 No\r\n${body('')}`,
      /\(400\); check how it validates the request, .*; if it serves HTTPS, start endpoint\.url with https$/,
    ],
    [
      'a 500',
      `HTTP/1.1 500 No\r\n${body('KeyError: zone')}`,
      /answered 500: KeyError: zone; allowed are .*; check the log of the component, and the endpoint .* appends \/v1\/reconcile$/,
    ],
    [
      'a 202 with an outcome',
      `HTTP/1.1 202 Accepted\r\n${body({ outcome: 'Done' })}`,
      /^outcome must not be in an answer 202, .*; answer 200 with the outcome$/,
    ],
    ['a 503', `HTTP/1.1 503 Busy\r\n${body('')}`, /^the component answered 503$/],
    ['a 503 with a body', `HTTP/1.1 503 Busy\r\n${body('maintenance')}`, /^the component answered 503: maintenance$/],
    ['outputs of a wrong type', ok({ outcome: 'Done', outputs: { dns: 'zone' } }), /^outputs\.dns must be an object, /],
    ['outputs of a failure', ok({ outcome: 'Failed', outputs: {} }), /^outputs must be absent, .* outcome is Failed; /],
  ] as const) {
    it(`describes ${what}`, async () => {
      const reply = await call(await serve((socket) => socket.write(answer)));
      const message = 'message' in reply ? reply.message : '';
      assert.match(message, text);
    });
  }

  it('maps a refused connection to a run that did not happen', async () => {
    const reply = await call('http://127.0.0.1:1');
    assert.equal(reply.kind === 'notAccepted' && reply.code, 'Unreachable');
  });

  it('reports notCalled if it gets no token', async () => {
    const url = await serve((socket) => socket.write(ok({ outcome: 'Done' })));
    const error = new ApiError(500, 'InternalError', 'etcd is away');
    const tokens = { forCall: () => Promise.reject(error) };
    const without = new HttpComponentClient({ tokens, clock: systemClock, allowLoopbackHttp: true });
    const registration = registrationOf('network', { endpoint: { url } });
    const reply = await without.invoke(registration, request, new AbortController().signal);
    assert.equal(reply.kind, 'notCalled');
    assert.deepEqual(received, []);
    without.close();
  });

  it('calls a component whose registration changes during the token request', async () => {
    const url = await serve((socket) => socket.write(ok({ outcome: 'Done' })));
    const tokens: PromiseWithResolvers<string>[] = [];
    const forCall = (): Promise<string> => {
      const token = Promise.withResolvers<string>();
      tokens.push(token);
      return token.promise;
    };
    const slow = new HttpComponentClient({ tokens: { forCall }, clock: systemClock, allowLoopbackHttp: true });
    const { signal } = new AbortController();
    const invoke = (timeoutMs: number): Promise<Reply> =>
      slow.invoke(registrationOf('network', { endpoint: { url }, timeoutMs }), request, signal);
    const calls = [invoke(5000), invoke(6000)];
    for (const index of [1, 0]) {
      tokens[index]?.resolve('token');
      assert.equal((await calls[index])?.kind, 'outcome');
    }
    slow.close();
  });

  it('retries a run whose kept-alive connection was just closed', async () => {
    const url = await serve((socket, nth) => {
      if (nth === 2) socket.destroy();
      else socket.write(ok({ outcome: 'Done' }));
    });
    assert.equal((await call(url)).kind, 'outcome');
    await isKept();
    assert.equal((await call(url)).kind, 'outcome');
    assert.equal(received.length, 3);
    const [, second, third] = received.map((text) => text.replace(/^connection: .*\r\n/im, ''));
    assert.equal(second, third);
  });

  it('retries a run on a new connection if all kept-alive ones were closed', async () => {
    const kept: Socket[] = [];
    let closed = false;
    const url = await serve((socket) => {
      if (!closed) {
        kept.push(socket);
        // Concurrently, so that each call has its own connection.
        if (kept.length === 3) for (const one of kept) one.write(ok({ outcome: 'Done' }));
      } else if (kept.includes(socket)) socket.resetAndDestroy();
      else socket.write(ok({ outcome: 'Done' }));
    });
    await Promise.all([call(url), call(url), call(url)]);
    await isKept();
    closed = true;
    assert.deepEqual(await call(url), { kind: 'outcome', outcome: { outcome: 'Done' } });
    assert.equal(received.length, 5);
  });

  it('ends with the reason of the signal', async () => {
    const abort = new AbortController();
    const url = await serve(() => abort.abort(new Error('lost the lease')));
    await assert.rejects(call(url, {}, abort.signal), /lost the lease/);
  });

  describe('over TLS', () => {
    const trusted = newSignedPair(['localhost', '127.0.0.1'], Date.now());
    const other = newSignedPair(['localhost', '127.0.0.1'], Date.now());

    async function serveTls({ cert, key } = trusted.pair): Promise<string> {
      const server = createHttps({ cert, key }, (_request, response) => response.end('{"outcome":"Done"}'));
      server.on('connection', (socket: Socket) => sockets.add(socket));
      return listening(server, 'https');
    }

    it('calls a component whose certificate is signed by the registered CA', async () => {
      const reply = await call(await serveTls(), { caBundle: trusted.authority });
      assert.equal(reply.kind, 'outcome', JSON.stringify(reply));
    });

    it('reaches a recovered component despite an earlier connection that was never established', async () => {
      const { cert, key } = trusted.pair;
      const component = createHttps({ cert, key }, (_request, response) => response.end('{"outcome":"Done"}'));
      let isBack = false;
      const server = createServer((socket) => {
        sockets.add(socket);
        if (isBack) component.emit('connection', socket);
      });
      const url = await listening(server, 'https');
      const registered = { caBundle: trusted.authority, maxConcurrent: 1 };
      const silent = await call(url, registered);
      assert.equal(silent.kind === 'notAccepted' && silent.code, 'Unreachable', JSON.stringify(silent));
      isBack = true;
      const isCalled = async (): Promise<boolean> => (await call(url, registered)).kind === 'outcome';
      await until('the component to be called', isCalled, { timeoutMs: 4000, everyMs: 50 });
    });

    for (const [what, caBundle] of [
      ['another CA', other.authority],
      ['no CA', undefined],
    ] as const) {
      it(`does not call a component with ${what} in its registration`, async () => {
        const reply = await call(await serveTls(), { caBundle });
        const message =
          'no CA of spec.caBundle signed the certificate of the endpoint; check that spec.endpoint leads to the component, and set spec.caBundle to the CA that signed its certificate';
        assert.deepEqual(reply, { kind: 'notAccepted', code: 'Unreachable', message });
      });
    }

    for (const [valid, host, type] of [
      ['localhost', '127.0.0.1', 'IP'],
      ['other', 'localhost', 'DNS'],
    ] as const) {
      it(`names the ${type} host that the certificate of an endpoint lacks, and those that it has`, async () => {
        const { pair, authority } = newSignedPair([valid], Date.now());
        const reply = await call((await serveTls(pair)).replace('127.0.0.1', host), { caBundle: authority });
        const message = `the certificate of the endpoint is for DNS:${valid}, not for ${host}; issue it with the subject alternative name ${type}:${host}`;
        assert.deepEqual(reply, { kind: 'notAccepted', code: 'Unreachable', message });
      });
    }

    it('names the scheme if an HTTPS server closes a connection without TLS', async () => {
      const reply = await call((await serveTls()).replace('https:', 'http:'));
      const message =
        'the connection closed before the whole answer arrived; check the log of the component; if it serves HTTPS, start endpoint.url with https';
      assert.deepEqual(reply, { kind: 'failed', code: 'Cut', message });
    });

    it('says that an endpoint closed the connection before the call was sent', async () => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.end());
      });
      const reply = await call(await listening(server, 'https'));
      const message =
        'the endpoint closed the connection before the server sent the call; check that it serves HTTPS, and the log of the component';
      assert.deepEqual(reply, { kind: 'notAccepted', code: 'Unreachable', message });
    });

    it('says that an endpoint does not speak TLS', async () => {
      const server = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
      });
      const reply = await call(await listening(server, 'https'));
      const message = 'the endpoint does not speak TLS; serve HTTPS there';
      assert.deepEqual(reply, { kind: 'notAccepted', code: 'Unreachable', message });
    });
  });

  for (const url of ['http://example.org', 'http://127.0.0.1.example.org', 'ftp://127.0.0.1', 'https://u:p@h', 'x']) {
    it(`never calls ${url}`, async () => {
      const reply = await call(url);
      assert.equal(reply.kind === 'notAccepted' && reply.code, 'Unreachable');
    });
  }

  it('calls plain http only if it is allowed', async () => {
    const url = await serve((socket) => socket.write(ok({ outcome: 'Done' })));
    const strict = new HttpComponentClient({
      tokens: { forCall: async () => 't' },
      clock: systemClock,
      allowLoopbackHttp: false,
    });
    const registration = registrationOf('network', { endpoint: { url } });
    const reply = await strict.invoke(registration, request, new AbortController().signal);
    assert.equal(reply.kind, 'notAccepted');
    assert.deepEqual(received, []);
  });
});
