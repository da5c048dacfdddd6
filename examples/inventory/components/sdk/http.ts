import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { describe } from './values.ts';

/** Certificates are PEM. Without `ca`, Node trusts the public CAs. */
export interface Tls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** To verify in the server's certificate, instead of the host of the URL. */
  readonly servername?: string;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: URL;
  readonly token?: string | undefined;
  readonly tls?: Tls;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** No complete or valid answer. The server may have acted on the request. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
}

const timeoutMs = 10_000;
/** Twice the largest object that the API server stores. */
const maxAnswerBytes = 3 * 1024 * 1024;

/** The whole answer. Rejects with TransportError, or the reason of `signal`. */
export function call({ method, url, token, tls = {}, body, contentType, signal }: Call): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    accept: 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(text === undefined
      ? {}
      : { 'content-type': contentType ?? 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => {
      const why = timeout.aborted ? `no answer within ${timeoutMs} ms` : describe(cause);
      reject(signal?.aborted ? signal.reason : new TransportError(`${method} ${url.pathname}: ${why}`, { cause }));
    };
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    // A kept-alive connection may close just before the next call, which would then fail.
    const options = { method, headers, agent: false, signal: AbortSignal.any(signal ? [signal, timeout] : [timeout]) };
    const request = send(url, { ...options, ...tls }, (answer) => {
      const chunks: Buffer[] = [];
      let length = 0;
      answer.on('data', (chunk: Buffer) => {
        length += chunk.length;
        chunks.push(chunk);
        if (length > maxAnswerBytes) request.destroy(new Error(`the answer is larger than ${maxAnswerBytes} bytes`));
      });
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString() }),
      );
      answer.on('error', fail);
    });
    request.on('error', fail);
    request.end(text);
  });
}
