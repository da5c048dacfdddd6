import type { IncomingMessage, ServerResponse } from 'node:http';

/** Undefined also if longer than 16,384 characters. */
export const bearerToken = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '')?.[1];

/** Unless an answer was started or the connection is closed. 429 and 503 get `Retry-After: 1`. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // The rest of an unread body must not be parsed as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
    ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(text);
}
