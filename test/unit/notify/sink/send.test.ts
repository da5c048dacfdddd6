import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { portOf } from '../../../../sandbox/ports.ts';
import { until } from '../../../../sandbox/wait.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { createSend } from '../../../../src/notify/send.ts';
import type { Answer } from '../../../../src/notify/sink.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';
import { factOf, HttpsSink, messageOf, send, served, sinkOf } from '../media/stage.ts';

const message = messageOf([factOf()]);
const never = new AbortController().signal;
const allowed = ['127.0.0.1/32'];

describe('a call to a sink', () => {
  let sink: HttpsSink;
  const servers: Server[] = [];
  before(async () => {
    sink = await HttpsSink.open();
  });
  beforeEach(() => {
    sink.received.length = 0;
    sink.answer = (response) => response.writeHead(204).end();
  });
  after(() => {
    sink.close();
    for (const server of servers) server.close();
  });

  async function listening(server: Server): Promise<number> {
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return portOf(server);
  }

  describe('with an answer', () => {
    type Row = [status: number, headers: Record<string, string>, body: string, expected: Answer];
    const refused = (said: string, rest: object = {}): Answer => ({ delivered: false, code: 'Refused', said, ...rest });
    const rows: Record<string, Row> = {
      'that accepts the message': [202, {}, 'thanks', { delivered: true, said: 'HTTP 202: thanks' }],
      '410: nothing more is sent': [410, {}, '', { delivered: false, code: 'Gone', said: 'HTTP 410' }],
      '429 with seconds': [429, { 'retry-after': '7' }, 'slow', refused('HTTP 429: slow', { retryAfterMs: 7000 })],
      '503 with seconds': [503, { 'retry-after': '120' }, '', refused('HTTP 503', { retryAfterMs: 120_000 })],
      '429 with nonsense': [429, { 'retry-after': 'soon' }, '', refused('HTTP 429')],
      '500': [500, {}, 'broken', refused('HTTP 500: broken')],
      'a redirect, which is not followed': [
        302,
        { location: 'https://127.0.0.1/internal' },
        'moved',
        refused('HTTP 302: redirects are not followed; set the address that it leads to'),
      ],
      'control characters': [200, {}, 'a\u001b[2J\u202eb\r\n', { delivered: true, said: 'HTTP 200: a?[2J?b??' }],
    };
    for (const [what, [status, headers, body, expected]] of Object.entries(rows)) {
      it(what, async () => {
        sink.answer = (response) => response.writeHead(status, headers).end(body);
        assert.deepEqual(await send(sinkOf(sink.url), message), expected);
        assert.equal(sink.received.length, 1);
      });
    }

    it('429 with a date', async () => {
      const clock = new SimulatedClock(Date.UTC(2026, 10, 21, 9, 30));
      sink.answer = (response) => response.writeHead(429, { 'retry-after': 'Sat, 21 Nov 2026 09:31:00 GMT' }).end();
      const answer = await createSend({ clock, allowed })(sinkOf(sink.url), message, never);
      assert.equal(!answer.delivered && answer.retryAfterMs, 60_000);
    });

    it('of a gigabyte is not read', async () => {
      let bytes = 0;
      const write = (response: ServerResponse): void => {
        while (!response.destroyed && bytes < 1e9) {
          bytes += 65_536;
          if (!response.write(Buffer.alloc(65_536, 'x'))) {
            response.once('drain', () => write(response));
            return;
          }
        }
      };
      sink.answer = (response) => write(response.writeHead(200));
      const answer = await send(sinkOf(sink.url), message);
      assert.equal(answer.said, `HTTP 200: ${'x'.repeat(501)}…`);
      assert.ok(bytes < 2e8, `sent ${bytes} bytes`);
    });

    it('that echoes credentials shows none of them', async () => {
      const path = '/services/T00000000/B00000000/very-secret-part?sig=also%20very%20secret';
      sink.answer = (response, { headers, body: _ }) =>
        response.writeHead(404).end(`${headers.authorization} ${path} ${path.replaceAll('/', '\\/')} also very secret`);
      const address = `https://127.0.0.1:${sink.port}${path}`;
      const answer = await send(sinkOf(address, { type: 'Slack', token: 'xoxb-the-token', channel: 'c' }), message);
      assert.match(answer.said, /^HTTP 404: Bearer \*+ /);
      assert.doesNotMatch(answer.said, /xoxb|T0000|very/);
    });

    it('that has a credential where it is cut off shows no part of it', async () => {
      const secret = 'secret-of-the-path'.repeat(20);
      sink.answer = (response) => response.writeHead(404).end(`${' '.repeat(495)}${secret}`);
      const answer = await send(sinkOf(`https://127.0.0.1:${sink.port}/${secret}`), message);
      assert.doesNotMatch(answer.said, /secret/);
    });
  });

  describe('without an answer', () => {
    const unreachable = (said: RegExp, answer: Answer): void => {
      assert.equal(!answer.delivered && answer.code, 'Unreachable', JSON.stringify(answer));
      assert.match(answer.said, said);
    };
    const afterTimeout = async (port: number, isReached: () => boolean): Promise<Answer> => {
      const clock = new SimulatedClock();
      const answer = createSend({ clock, allowed })(sinkOf(`https://127.0.0.1:${port}`), message, never);
      await until('the sink is reached', isReached, { timeoutMs: 5000, everyMs: 1 });
      await clock.advance(10_000);
      return answer;
    };

    it('ends at the time limit', async () => {
      let isClosed = false;
      sink.answer = (response) => response.once('close', () => (isClosed = true));
      unreachable(/no answer within 10000 ms/, await afterTimeout(sink.port, () => sink.received.length === 1));
      await until('the connection is closed', () => isClosed, { timeoutMs: 5000, everyMs: 1 });
    });

    it('ends at the time limit within the body', async () => {
      sink.answer = (response) => response.writeHead(200).write('a');
      unreachable(/no answer within/, await afterTimeout(sink.port, () => sink.received.length === 1));
    });

    it('ends at the time limit within the TLS handshake', async () => {
      let isReached = false;
      const port = await listening(createTcpServer((socket) => socket.on('data', () => (isReached = true))));
      unreachable(/no answer within/, await afterTimeout(port, () => isReached));
    });

    it('ends at the time limit within the resolution', async () => {
      const clock = new SimulatedClock();
      const lookup = (): Promise<never> => new Promise(() => {});
      const answer = createSend({ clock, allowed, lookup })(sinkOf('https://sink.test'), message, never);
      await clock.advance(10_000);
      unreachable(/no answer within/, await answer);
    });

    it('ends with headers that never end', async () => {
      const flood = (socket: TLSSocket): void => {
        socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\n');
        const more = (): void => {
          while (!socket.destroyed && socket.write(`x-more: ${'x'.repeat(1000)}\r\n`));
        };
        socket.on('drain', more);
        more();
      };
      const port = await listening(createTlsServer(served, flood));
      unreachable(/Header overflow/, await send(sinkOf(`https://127.0.0.1:${port}`), message));
    });

    it('ends if the sink closes the connection', async () => {
      sink.answer = (response) => response.destroy();
      unreachable(/socket hang up/, await send(sinkOf(sink.url), message));
    });

    it('ends if no port listens', async () => {
      const server = createTcpServer();
      const port = await listening(server);
      await new Promise((resolve) => server.close(resolve));
      unreachable(/ECONNREFUSED/, await send(sinkOf(`https://127.0.0.1:${port}`), message));
    });

    it('ends if another authority signed the certificate', async () => {
      const { caBundle: _, ...rest } = sinkOf(sink.url);
      unreachable(/certificate/, await send(rest, message));
      assert.equal(sink.received.length, 0);
    });

    it('ends if the certificate is for another name', async () => {
      const lookup = async () => [{ address: '127.0.0.1', family: 4 }];
      const to = sinkOf(`https://other.test:${sink.port}`);
      unreachable(/altnames/, await createSend({ clock: systemClock, allowed, lookup })(to, message, never));
      assert.equal(sink.received.length, 0);
    });

    it('ends if the name has no address', async () => {
      const lookup = async (): Promise<never> => {
        throw new Error('getaddrinfo ENOTFOUND sink.test');
      };
      const answer = await createSend({ clock: systemClock, allowed, lookup })(
        sinkOf('https://sink.test'),
        message,
        never,
      );
      unreachable(/ENOTFOUND/, answer);
    });

    it('rejects with the reason of the signal, and closes the connection', async () => {
      const abort = new AbortController();
      let isClosed = false;
      sink.answer = (response) => response.once('close', () => (isClosed = true));
      const answer = send(sinkOf(sink.url), message, abort.signal);
      await until('the sink is reached', () => sink.received.length === 1, { timeoutMs: 5000, everyMs: 1 });
      abort.abort(new Error('the server stops'));
      await assert.rejects(answer, { message: 'the server stops' });
      await until('the connection is closed', () => isClosed, { timeoutMs: 5000, everyMs: 1 });
    });

    it('rejects at once if the signal has aborted', async () => {
      await assert.rejects(send(sinkOf(sink.url), message, AbortSignal.abort(new Error('stopped'))), {
        message: 'stopped',
      });
      assert.equal(sink.received.length, 0);
    });
  });

  describe('to an address', () => {
    it('that is not allowed is not made', async () => {
      const answer = await createSend({ clock: systemClock, allowed: [] })(sinkOf(sink.url), message, never);
      assert.equal(!answer.delivered && answer.code, 'AddressNotAllowed');
      assert.equal(sink.received.length, 0);
    });

    it('goes to the one that was checked, though the next resolution yields another', async () => {
      let resolutions = 0;
      const lookup = async () => [{ address: resolutions++ === 0 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
      const to = sinkOf(`https://sink.test:${sink.port}/hook`);
      const answer = await createSend({ clock: systemClock, allowed, lookup })(to, message, never);
      assert.deepEqual([answer.delivered, resolutions], [true, 1]);
      assert.equal(sink.received[0]?.headers.host, `sink.test:${sink.port}`);
    });
  });
});
