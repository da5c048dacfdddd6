import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { reconcilePath } from '../../../src/api/inventory/contract/request.ts';

/** The raw answer. */
export interface PlainAnswer {
  readonly status: number;
  readonly body: unknown;
}

export interface Address {
  readonly url: string;
  /** PEM of the CA that signed the certificate. */
  readonly ca?: string;
}

/** Calls a component over HTTP with any body and token. */
export function post({ url, ca }: Address, body: unknown, token: string | undefined): Promise<PlainAnswer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const options = { method: 'POST', headers, agent: false, ca } as const;
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = send(`${url}${reconcilePath}`, options, (answer) => {
      let said = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        said += chunk;
      });
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, body: said === '' ? undefined : JSON.parse(said) }),
      );
      answer.on('error', reject);
    });
    request.on('error', reject);
    request.end(text);
  });
}
