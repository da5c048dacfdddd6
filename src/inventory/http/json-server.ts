import type { IncomingMessage, ServerResponse } from 'node:http';

/** The token of `Authorization: Bearer`; undefined when there is none, or none that can be one. */
export const bearerToken = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '')?.[1];

/** Answers with JSON, unless an answer has begun or the caller is gone. A caller that is told 429 or 503 comes back after a second. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, body: object): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // The server would take the unread rest of the body for the next request.
    ...(request.complete ? {} : { connection: 'close' }),
    ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(text);
}
