import { request } from 'node:https';
import type { Identity } from './pki.ts';

export interface ApiAnswer {
  readonly status: number;
  /** The JSON value, or the text when it is none. */
  readonly body: unknown;
}

export interface ApiTarget {
  readonly server: string;
  readonly authority: string;
  readonly identity: Identity;
}

const timeoutMs = 10_000;

/** One call to the API on a connection of its own; the body of a PATCH is a merge patch. Rejects only when there is no answer within 10 s. */
export function callApi(target: ApiTarget, method: string, path: string, body?: unknown): Promise<ApiAnswer> {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const call = request(
      new URL(path, target.server),
      {
        method,
        agent: false,
        ca: target.authority,
        cert: target.identity.certificate,
        key: target.identity.key,
        timeout: timeoutMs,
        headers: {
          accept: 'application/json',
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
    call.on('error', reject);
    call.end(payload);
  });
}

const contentTypeOf = (method: string): string =>
  method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
