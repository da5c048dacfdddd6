import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { own } from '../kit/json-value.ts';

export interface Refusal {
  readonly status: 400 | 401 | 403 | 404 | 405 | 429 | 431 | 502 | 503;
  /** Stable, such as `NoGrant`; for the audit journal. */
  readonly code: string;
  /** What was found; what is allowed; what to do. */
  readonly message: string;
}

/** The field `reason` of the Status. Clients print it. */
const reasons: Readonly<Record<Refusal['status'], string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  429: 'TooManyRequests',
  431: 'BadRequest',
  502: 'ServiceUnavailable',
  503: 'ServiceUnavailable',
};

/** For the first line of an answer. */
const titles: Readonly<Record<Refusal['status'], string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
};

/** As a Kubernetes Status. */
export const bodyOf = ({ status, code, message }: Refusal): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `drawbridge: ${message}`,
    reason: reasons[status],
    details: { causes: [{ reason: code, message }] },
    code: status,
  });

export function refuse(response: ServerResponse, refusal: Refusal): void {
  response.writeHead(refusal.status, { 'content-type': 'application/json' });
  response.end(bodyOf(refusal));
}

/** After a refusal, destroys a connection on which nothing more comes and the client keeps open. */
const CLOSE_MS = 1000;

/** Ends the connection; destroys it if the client keeps its side open (`CLOSE_MS` without data). */
export function endSocket(socket: Duplex, last: string | Buffer): void {
  socket.end(last);
  socket.resume();
  if (socket instanceof Socket) socket.setTimeout(CLOSE_MS, () => socket.destroy());
}

/** Answers a call that asked for an upgrade, and closes its connection. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  const body = bodyOf(refusal);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  endSocket(socket, `${head(`${refusal.status} ${titles[refusal.status]}`, headers)}${body}`);
}

/** Headers of the API server's answers that the client gets. */
const relayed = ['audit-id', 'cache-control', 'content-encoding', 'content-type', 'warning'];

/** If the answer breaks off, the client's connection does, too. */
export function relay(message: IncomingMessage, response: ServerResponse): void {
  response.writeHead(message.statusCode ?? 502, pick(message.headers));
  message.on('error', () => response.destroy());
  message.on('aborted', () => response.destroy());
  message.pipe(response);
}

/** Bytes of the Status with which the API server refuses an upgrade. */
const MAX_STATUS_BYTES = 64 * 1024;

/** The API server's refusal of an upgrade. Statuses other than 400, 403, and 404 become 502. */
export async function refusalIn(message: IncomingMessage): Promise<Refusal> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of message as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= MAX_STATUS_BYTES) parts.push(part);
  }
  const { statusCode = 502 } = message;
  const status = statusCode === 400 || statusCode === 403 || statusCode === 404 ? statusCode : 502;
  const why = messageIn(Buffer.concat(parts).toString('utf8')) ?? `HTTP status ${statusCode}`;
  return { status, code: 'RefusedByApiServer', message: `the API server refused the stream: ${why}` };
}

function messageIn(text: string): string | undefined {
  try {
    const message = own(JSON.parse(text), 'message');
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

/** Begins a WebSocket, with the subprotocol that the API server chose. */
export function switchingProtocols(headers: IncomingHttpHeaders): string {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol', 'audit-id'];
  return head('101 Switching Protocols', { connection: 'Upgrade', upgrade: 'websocket', ...pick(headers, names) });
}

function pick(headers: IncomingHttpHeaders, names: readonly string[] = relayed): Record<string, string | string[]> {
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name] ?? '']])),
  );
}

function head(status: string, headers: Readonly<Record<string, string | string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  return `HTTP/1.1 ${status}\r\n${lines.join('\r\n')}\r\n\r\n`;
}
