import { request } from 'node:https';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';

export interface Said {
  readonly status: number;
  readonly body: string;
}

type Target = Pick<ReconcileRequest, 'entry' | 'auth'>;

/** A merge patch of the entry's status, with nothing but what the request of a run gives. */
export function patchStatus({ entry, auth }: Target, patch: unknown): Promise<Said> {
  const headers = { 'content-type': 'application/merge-patch+json' };
  return called({ method: 'PATCH', url: `${entry.url}/status`, headers }, auth, JSON.stringify(patch));
}

/** The entry, as whoever has the token of the run gets it. */
export function readEntry({ entry, auth }: Target): Promise<Said> {
  return called({ method: 'GET', url: entry.url, headers: {} }, auth);
}

type Outputs = Readonly<Record<string, { readonly count?: number } | undefined>>;

/** The outputs in an entry as the API server returned it. */
export const outputsIn = (body = '{}'): Outputs | undefined =>
  (JSON.parse(body) as { status?: { outputs?: Outputs } }).status?.outputs;

function called(
  { method, url, headers }: { method: string; url: string; headers: Readonly<Record<string, string>> },
  { ca, token }: Target['auth'],
  body?: string,
): Promise<Said> {
  return new Promise((resolve, reject) => {
    const all = { ...headers, authorization: `Bearer ${token}` };
    const call = request(url, { method, ca, headers: all }, (answer) => {
      let text = '';
      answer.on('data', (bytes: Buffer) => {
        text += bytes.toString('utf8');
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
    });
    call.on('error', reject);
    call.end(body);
  });
}
