import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError, quote } from '../kit/errors.ts';
import type { FairShare } from '../kit/fair-share.ts';
import { announcedBytes, collectBody, freeBody } from '../kit/request-body.ts';
import type { FairQueue } from './fair-queue.ts';

/** etcd accepts objects up to 1.5 MiB, and the review of an UPDATE has two of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Of a piece (256 KiB): decrypting and copying it costs as much as a usual review. */
const PIECE_COST_MS = 0.5;

/** Why the server rejects a call before it parses the body. */
export class BodyError extends CodedError {
  override readonly name = 'BodyError';
  constructor(
    readonly status: 400 | 413 | 415 | 503,
    code: string,
    message: string,
  ) {
    super(code, message);
  }
}

/** All bodies share these. */
export interface BodyLimits {
  /** Of body bytes. */
  readonly memory: FairShare;
  /** Of the pieces of bodies. */
  readonly queue: FairQueue;
}

/**
 * Reads a JSON body. Its memory counts until the response closes; when it is used up, a smaller
 * body, or an address that holds less, may displace this one. Rejects with BodyError
 * `UnsupportedMediaType`, `UnsupportedEncoding`, `BodyTooLarge`, or `Overloaded`.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { memory, queue }: BodyLimits,
): Promise<Buffer> {
  expectJson(request);
  const announced = announcedBytes(request);
  if (announced !== undefined && announced > MAX_BODY_BYTES) throw tooLarge(`the headers announce ${announced} bytes`);
  const release = memory.acquire(addressOf(request), announced ?? MAX_BODY_BYTES, () => request.socket.destroy());
  if (!release) throw new BodyError(503, 'Overloaded', 'the memory for request bodies is full; try again');
  response.once('close', release);
  const nextTurn = (): Promise<void> => queue.run(addressOf(request), () => {}, { leastMs: PIECE_COST_MS });
  const body = await collectBody(request, { maxBytes: MAX_BODY_BYTES, nextTurn });
  if (!body) throw tooLarge('the body is too long');
  response.once('close', () => freeBody(body));
  return body;
}

/** By this, the server shares memory and processor time. */
export const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? '';

function expectJson(request: IncomingMessage): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json[\t ]*(;|$)/i.test(type)) {
    const message = `the content type is ${quote(type)}; only application/json is allowed; set the header Content-Type`;
    throw new BodyError(415, 'UnsupportedMediaType', message);
  }
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    const message = `the content encoding is ${quote(encoding)}; only identity is allowed; send the body uncompressed`;
    throw new BodyError(415, 'UnsupportedEncoding', message);
  }
}

function tooLarge(found: string): BodyError {
  return new BodyError(
    413,
    'BodyTooLarge',
    `${found}; a body may have at most ${MAX_BODY_BYTES} bytes; make the object smaller`,
  );
}
