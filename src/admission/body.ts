import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError } from '../kit/errors.ts';
import type { FairShare } from '../kit/fair-share.ts';
import { announcedBytes, collectBody, freeBody } from '../kit/request-body.ts';
import type { FairQueue } from './fair-queue.ts';

/** etcd accepts objects up to 1.5 MiB, and an UPDATE has two of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Processor time of reading 256 KiB, milliseconds. Decrypting and copying them costs as much as a review. */
const PIECE_COST_MS = 0.5;

/** A call that the server rejects before it parses the body. `status` is the HTTP status. */
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

/** Limits that all bodies share. */
export interface BodyLimits {
  /** Budget of body bytes in memory. */
  readonly memory: FairShare;
  /** Queue of the pieces of bodies. */
  readonly queue: FairQueue;
}

/**
 * Reads the bytes of a JSON body. It acquires their memory before the first byte and releases it when the response closes. If an
 * address with less memory needs it, the server destroys the connection. Rejects with BodyError before the limit is exceeded, whatever
 * the headers claim. Also rejects like `collectBody`, and with CodedError `Overloaded` if the queue is full.
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
  const nextTurn = (): Promise<void> => queue.run(addressOf(request), () => {}, PIECE_COST_MS);
  const body = await collectBody(request, { maxBytes: MAX_BODY_BYTES, nextTurn });
  if (!body) throw tooLarge('the body is longer');
  response.once('close', () => freeBody(body));
  return body;
}

/** The source that the server charges a call to. */
export const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? '';

function expectJson(request: IncomingMessage): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json[\t ]*(;|$)/i.test(type)) {
    throw new BodyError(415, 'UnsupportedMediaType', 'the body must be application/json');
  }
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    throw new BodyError(415, 'UnsupportedEncoding', 'the body must not be compressed');
  }
}

function tooLarge(found: string): BodyError {
  return new BodyError(413, 'BodyTooLarge', `${found}; a body may have at most ${MAX_BODY_BYTES} bytes`);
}
