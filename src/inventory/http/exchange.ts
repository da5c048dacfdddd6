import { type ClientRequest, type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { Reply } from '../ports.ts';

export interface Exchange {
  readonly url: URL;
  /** Keeps connections. */
  readonly agent: HttpAgent | HttpsAgent;
  /** Makes one for a connection of its own. */
  readonly freshAgent: () => HttpAgent | HttpsAgent;
  readonly token: string;
  readonly body: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

/** Largest answer that is read, bytes. */
export const maxAnswerBytes = 131_072;

/**
 * One request and its answer, or what came of it instead. Rejects only with the reason of `signal`. A connection that was kept and that
 * the component closed just then is replaced by a new one: the run is the same, and components take a run twice.
 */
export async function exchange(options: Exchange): Promise<Answer | Reply> {
  const { clock, timeoutMs, freshAgent } = options;
  const startedAt = clock.monotonic();
  const first = await attempt(options);
  if (first !== 'stale') return first;
  // Others that were kept may be as stale.
  const leftMs = Math.max(0, timeoutMs - (clock.monotonic() - startedAt));
  const second = await attempt({ ...options, agent: freshAgent(), timeoutMs: leftMs });
  return second === 'stale' ? { kind: 'broken', code: 'Cut', message: 'the connection was closed' } : second;
}

class TooLarge extends Error {}
class TimedOut extends Error {}

function attempt(options: Exchange): Promise<Answer | Reply | 'stale'> {
  const { url, agent, token, body, timeoutMs, clock, signal } = options;
  const secure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    let answering = false;
    let sent = false;
    const settle = (result: Answer | Reply | 'stale'): void => {
      end();
      resolve(result);
    };
    const fail = (error: unknown): void => {
      end();
      if (signal.aborted) reject(signal.reason);
      else resolve(failure(error, request, { answering, sent, timeoutMs }));
    };
    const answered = (answer: IncomingMessage): void => {
      answering = true;
      read(answer).then(
        (bytes) =>
          settle({
            kind: 'answer',
            status: answer.statusCode ?? 0,
            retryAfter: answer.headers['retry-after'],
            body: bytes,
          }),
        (error: unknown) => {
          request.destroy();
          fail(error);
        },
      );
    };
    const request = (secure ? httpsRequest : httpRequest)(
      url,
      {
        method: 'POST',
        agent,
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      answered,
    );
    request.on('error', fail);
    request.on('socket', (socket) => {
      if (!socket.connecting && !(secure && (socket as TLSSocket).getProtocol() === null)) sent = true;
      else socket.once(secure ? 'secureConnect' : 'connect', () => (sent = true));
    });
    const cancel = clock.schedule(timeoutMs, () => {
      const error = new TimedOut();
      request.destroy(error);
      fail(error);
    });
    const onAbort = (): void => {
      request.destroy();
      fail(signal.reason);
    };
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) return onAbort();
    request.end(body);
  });
}

async function read(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswerBytes) throw new TooLarge(`the answer is larger than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function failure(
  error: unknown,
  request: ClientRequest,
  { answering, sent, timeoutMs }: { readonly answering: boolean; readonly sent: boolean; readonly timeoutMs: number },
): Reply | 'stale' {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = describe(error);
  if (error instanceof TooLarge || code === 'HPE_HEADER_OVERFLOW') return { kind: 'broken', code: 'TooLarge', message };
  if (!sent) {
    const why = error instanceof TimedOut ? `no connection within ${timeoutMs} ms` : message;
    return { kind: 'notAccepted', code: 'Unreachable', message: why };
  }
  if (error instanceof TimedOut)
    return { kind: 'broken', code: 'Timeout', message: `no answer within ${timeoutMs} ms` };
  if (code.startsWith('HPE_')) return { kind: 'broken', code: 'NotJson', message: `not HTTP: ${message}` };
  if (!answering && request.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')) return 'stale';
  return { kind: 'broken', code: 'Cut', message };
}
