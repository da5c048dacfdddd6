import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { CodedError } from '../../kit/errors.ts';
import { retryAfterMs } from '../../kube/status-error.ts';
import { lookupIn } from '../destination.ts';
import type { Answer, Call } from '../sink.ts';

export interface HttpsAnswer {
  readonly status: number;
  readonly retryAfterMs?: number;
  /** Its beginning. */
  readonly body: string;
}

interface Post {
  /** Default: the address of the sink. */
  readonly url?: URL | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of the answer; the rest is not read. Default 4 KiB. */
  readonly maxAnswerBytes?: number;
}

/** Without a proxy, and on a new connection: only that is to a checked address. */
export async function post(
  { sink, resolve, clock, signal }: Call,
  { url = sink.address, headers = {}, body, maxAnswerBytes = 4096 }: Post,
): Promise<HttpsAnswer> {
  if (!url) throw new CodedError('NoAddress', 'the provider has no address');
  const addresses = await resolve(url.hostname.replace(/^\[|\]$/g, ''));
  const response = await new Promise<IncomingMessage>((onResponse, onError) => {
    const call = request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        ...headers,
        'content-length': Buffer.byteLength(body),
        'user-agent': 'drawbridge',
      },
      agent: false,
      lookup: lookupIn(addresses),
      signal,
      ...(sink.caBundle === undefined ? {} : { ca: sink.caBundle }),
    });
    call.once('response', onResponse).on('error', onError).end(body);
  });
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= maxAnswerBytes) break;
  }
  const delayMs = retryAfterMs(response.headers['retry-after'], clock.now());
  return {
    status: response.statusCode ?? 0,
    body: Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString('utf8'),
    ...(delayMs === undefined ? {} : { retryAfterMs: delayMs }),
  };
}

/** By the status alone. */
export function answerOf({ status, body, retryAfterMs }: HttpsAnswer): Answer {
  const said = `HTTP ${status}${body === '' ? '' : `: ${body}`}`;
  if (status >= 200 && status < 300) return { delivered: true, said };
  if (status === 410) return { delivered: false, code: 'Gone', said };
  const isRedirect = status >= 300 && status < 400;
  return {
    delivered: false,
    code: 'Refused',
    said: isRedirect ? `HTTP ${status}: redirects are not followed; set the address that it leads to` : said,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}
