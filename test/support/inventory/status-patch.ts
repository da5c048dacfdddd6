import { request } from 'node:https';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';

export interface StatusAnswer {
  readonly status: number;
  readonly body: string;
}

type Target = Pick<ReconcileRequest, 'entry' | 'auth'>;

/** Patches the entry's status using only data from the request of a run. */
export function patchStatus({ entry, auth }: Target, patch: unknown): Promise<StatusAnswer> {
  const headers = { 'content-type': 'application/merge-patch+json' };
  return called({ method: 'PATCH', url: `${entry.url}/status`, headers }, auth, JSON.stringify(patch));
}

/** Reads the entry with the token of the run. */
export function readEntry({ entry, auth }: Target): Promise<StatusAnswer> {
  return called({ method: 'GET', url: entry.url, headers: {} }, auth);
}

type Outputs = Readonly<Record<string, { readonly count?: number } | undefined>>;

/** Outputs in an entry that the API server returned. */
export const outputsIn = (body = '{}'): Outputs | undefined =>
  (JSON.parse(body) as { status?: { outputs?: Outputs } }).status?.outputs;

function called(
  { method, url, headers }: { method: string; url: string; headers: Readonly<Record<string, string>> },
  { ca, token }: Target['auth'],
  body?: string,
): Promise<StatusAnswer> {
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
