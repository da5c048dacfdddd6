import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { own } from '../kit/json-value.ts';

/** The refusal of a call. */
export interface Refusal {
  /** HTTP status. */
  readonly status: 400 | 401 | 403 | 404 | 405 | 429 | 431 | 502 | 503;
  /** Stable code, such as `NoLiveGrant`, for the audit journal. */
  readonly code: string;
  /** What was found; what is allowed; what to do. */
  readonly message: string;
}

/** The field `reason` of the Status, by HTTP status. Clients print it. */
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

/** The words after the HTTP status in the first line of an answer. */
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

/** The refusal as a Kubernetes Status. */
export const bodyOf = ({ status, message }: Refusal): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `drawbridge: ${message}`,
    reason: reasons[status],
    code: status,
  });

/** Answers with the refusal as a Kubernetes Status. */
export function refuse(response: ServerResponse, refusal: Refusal): void {
  response.writeHead(refusal.status, { 'content-type': 'application/json' });
  response.end(bodyOf(refusal));
}

/** Time without data after a refusal until the gateway destroys a connection that its client keeps open, milliseconds. */
const CLOSE_MS = 1000;

/** Writes `last`, and ends the connection. If the client keeps its side open, destroys the connection after `CLOSE_MS` without data. */
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

/** Headers of the API server's answers that `relay` passes to the client. */
const relayed = ['audit-id', 'cache-control', 'content-encoding', 'content-type', 'warning'];

/** Passes the API server's answer on while it arrives. If the answer breaks off, closes the client's connection. */
export function relay(message: IncomingMessage, response: ServerResponse): void {
  response.writeHead(message.statusCode ?? 502, pick(message.headers));
  message.on('error', () => response.destroy());
  message.on('aborted', () => response.destroy());
  message.pipe(response);
}

/** Maximum size of the Status with which the API server refuses an upgrade, bytes. */
const MAX_STATUS_BYTES = 64 * 1024;

/**
 * The refusal of an upgrade by the API server, for the client. It has the message of the API server's Status; without a message, the HTTP
 * status. An HTTP status other than 400, 403, and 404 becomes 502. Rejects if the answer breaks off.
 */
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

/** The `message` of a Status; undefined if the text is no JSON, or has no message. */
function messageIn(text: string): string | undefined {
  try {
    const message = own(JSON.parse(text), 'message');
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

/** The answer that begins a WebSocket, with the subprotocol that the API server chose. */
export function switchingProtocols(headers: IncomingHttpHeaders): string {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol', 'audit-id'];
  return head('101 Switching Protocols', { connection: 'Upgrade', upgrade: 'websocket', ...pick(headers, names) });
}

/** The headers with these names. Default: those that the gateway relays. */
function pick(headers: IncomingHttpHeaders, names: readonly string[] = relayed): Record<string, string | string[]> {
  return Object.fromEntries(
    names.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name] ?? '']])),
  );
}

/** The first line and the headers of an HTTP answer. */
function head(status: string, headers: Readonly<Record<string, string | string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}: ${value}`),
  );
  return `HTTP/1.1 ${status}\r\n${lines.join('\r\n')}\r\n\r\n`;
}
