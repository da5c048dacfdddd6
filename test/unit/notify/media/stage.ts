import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { createAuthority, issue } from '../../../../sandbox/pki.ts';
import { portOf } from '../../../../sandbox/ports.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { describe } from '../../../../src/kit/errors.ts';
import { type Fact, factId } from '../../../../src/notify/fact.ts';
import { createSend } from '../../../../src/notify/send.ts';
import type { Answer, Message, Sink } from '../../../../src/notify/sink.ts';

export const nowMs = Date.UTC(2026, 10, 21, 9, 30);

export const factOf = (rest: Partial<Fact> = {}): Fact => ({
  id: factId('uid-1', rest.event ?? 'requested'),
  event: 'requested',
  atMs: nowMs,
  request: { kind: 'PodAccessRequest', namespace: 'payments', name: 'shell-x7k2p', uid: 'uid-1' },
  template: 'payments-shell',
  requester: 'alice',
  reason: 'orders are stuck',
  permissions: ['exec', 'get pods/log'],
  duration: '30m',
  approvals: [{ name: 'security', have: 0, need: 1, groups: ['sec-oncall'] }],
  votes: [],
  ...rest,
});

export const messageOf = (facts: readonly Fact[], rest: Partial<Message> = {}): Message => ({
  id: facts[0]?.id ?? 'test-1',
  facts,
  linkBase: 'https://console.example.com',
  source: 'prod-eu-1',
  nowMs,
  ...rest,
});

const authority = createAuthority('sinks');
export const caBundle = authority.certificate;
/** For a TLS server on the loopback addresses. */
export const served = (() => {
  const { certificate: cert, key } = issue(authority, {
    commonName: 'sink',
    serves: ['localhost', '127.0.0.1', 'sink.test'],
  });
  return { cert, key };
})();

export const sinkOf = (address: string | undefined, rest: Partial<Sink> = {}): Sink => ({
  type: 'Webhook',
  ...(address === undefined ? {} : { address: new URL(address) }),
  signingKeys: [randomBytes(32)],
  caBundle,
  timeoutMs: 10_000,
  ...rest,
});

/** Allows only the loopback address of the receivers of these tests. */
export const send = (sink: Sink, message: Message, signal = new AbortController().signal): Promise<Answer> =>
  createSend({ clock: systemClock, allowed: ['127.0.0.1/32'] })(sink, message, signal);

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An HTTPS server that keeps what it receives. */
export class HttpsSink {
  readonly received: Received[] = [];
  answer: (response: ServerResponse, received: Received) => void = (response) => response.writeHead(204).end();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(): Promise<HttpsSink> {
    const server = createServer(served);
    const sink = new HttpsSink(server);
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void sink.#take(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return sink;
  }

  get port(): number {
    return portOf(this.#server);
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}/hook`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received = {
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    this.received.push(received);
    try {
      this.answer(response, received);
    } catch (error) {
      // So that the test shows what a receiver found wrong.
      response.writeHead(500).end(describe(error));
    }
  }
}
