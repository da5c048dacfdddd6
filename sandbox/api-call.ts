import { Agent, request } from 'node:https';
import type { Identity } from './pki.ts';

export interface ApiAnswer {
  readonly status: number;
  /** The JSON value, or the text if it is not JSON. */
  readonly body: unknown;
}

export interface ApiTarget {
  readonly server: string;
  readonly authority: string;
  readonly identity: Identity;
}

const timeoutMs = 30_000;

/** Keeps connections open: a waiting test calls many times a second, and handshakes would dominate the cost. */
const agents = new WeakMap<Identity, Agent>();

function agentOf({ authority: ca, identity }: ApiTarget): Agent {
  const { certificate: cert, key } = identity;
  const agent = agents.get(identity) ?? new Agent({ keepAlive: true, ca, cert, key });
  agents.set(identity, agent);
  return agent;
}

/** Sends one API call. The body of a PATCH is a merge patch; APPLY is a PATCH by server-side apply. Rejects after 30 s without an answer. */
export function callApi(
  target: ApiTarget,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ApiAnswer> {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const call = request(
      new URL(path, target.server),
      {
        method: method === 'APPLY' ? 'PATCH' : method,
        agent: agentOf(target),
        timeout: timeoutMs,
        headers: {
          accept: 'application/json',
          ...headers,
          ...(payload === undefined
            ? {}
            : { 'content-type': contentTypeOf(method), 'content-length': Buffer.byteLength(payload) }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: parse(Buffer.concat(chunks).toString('utf8')) }),
        );
      },
    );
    call.on('timeout', () => call.destroy(new Error(`no answer to ${method} ${path} within ${timeoutMs} ms`)));
    call.on('error', (error: NodeJS.ErrnoException) => {
      // The API server closed an idle connection before it received this call.
      if (call.reusedSocket && error.code === 'ECONNRESET') resolve(callApi(target, method, path, body, headers));
      else reject(error);
    });
    call.end(payload);
  });
}

const contentTypes: Readonly<Record<string, string>> = {
  PATCH: 'application/merge-patch+json',
  APPLY: 'application/apply-patch+yaml',
};

const contentTypeOf = (method: string): string => contentTypes[method] ?? 'application/json';

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
