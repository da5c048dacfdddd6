import type { IncomingMessage, ServerResponse } from 'node:http';

/** The token of `Authorization: Bearer`; undefined when there is none, or none that can be one. */
export const bearerToken = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '')?.[1];

/** Undefined when the body has more than `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return undefined;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

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
