import type { IncomingMessage, ServerResponse } from 'node:http';

/** The bearer token of a request; undefined if it is absent, malformed, or longer than 16,384 characters. */
export const bearerToken = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '')?.[1];

/** Sends a JSON answer, unless an answer was started or the connection is closed. Adds `Retry-After: 1` (seconds) to 429 and 503. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // If a part of the body is unread, close the connection, so that the server does not parse that part as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
    ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(text);
}
