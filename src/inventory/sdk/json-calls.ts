import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import type { ClusterTls } from '../../kube/credentials.ts';
import { TransportError } from '../../kube/errors.ts';

export interface JsonCall {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default `application/json`. */
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
}

export interface JsonAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/** Rejects with TransportError when no complete answer came. */
export interface JsonCaller {
  call(call: JsonCall): Promise<JsonAnswer>;
  close(): void;
}

const TIMEOUT_MS = 10_000;
/** Twice what the API server stores of one object. */
const MAX_ANSWER_BYTES = 3 * 1024 * 1024;

/** Calls over kept connections; unlike the client of kube/, each call may carry a token of its own. Without a CA: the public authorities. */
export function jsonCaller(tls: ClusterTls, clock: Clock): JsonCaller {
  const https = new HttpsAgent({ ...tls, keepAlive: true });
  const http = new HttpAgent({ keepAlive: true });
  return {
    call: (call) => send(call, { https, http }, clock),
    close: () => {
      https.destroy();
      http.destroy();
    },
  };
}

interface Agents {
  readonly https: HttpsAgent;
  readonly http: HttpAgent;
}

function send(call: JsonCall, agents: Agents, clock: Clock): Promise<JsonAnswer> {
  const { method, url, headers, body, contentType = 'application/json', signal } = call;
  const what = `${method} ${URL.canParse(url) ? new URL(url).pathname : 'of no URL'}`;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const options = {
    method,
    headers: {
      accept: 'application/json',
      ...headers,
      ...(text === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(text) }),
    },
    ...(signal ? { signal } : {}),
  };
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      limit();
      reject(
        signal?.aborted ? signal.reason : new TransportError(`${what}: ${describe(error)}`, error, isRefused(error)),
      );
    };
    const answered = (answer: IncomingMessage): void => {
      readText(answer).then((read) => {
        limit();
        resolve({ status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'], text: read });
      }, fail);
    };
    const request = url.startsWith('https:')
      ? httpsRequest(url, { ...options, agent: agents.https }, answered)
      : httpRequest(url, { ...options, agent: agents.http }, answered);
    const limit = clock.schedule(TIMEOUT_MS, () => request.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    request.on('error', fail);
    request.end(text);
  });
}

async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) {
      answer.destroy();
      throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const isRefused = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ECONNREFUSED' || error.code === 'ENOTFOUND');
