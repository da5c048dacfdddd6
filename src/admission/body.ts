import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError } from '../kit/errors.ts';
import type { FairShare } from '../kit/fair-share.ts';
import { announcedBytes, collectBody } from '../kit/request-body.ts';
import type { FairQueue } from './fair-queue.ts';

/** etcd takes objects up to 1.5 MiB, and an UPDATE carries two of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Processor time of reading 256 KiB, milliseconds: to decrypt and to copy them costs as much as a review. */
const PIECE_COST_MS = 0.5;

/** A call that is not worth parsing, or that there is no room for; `status` is what HTTP calls it. */
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

/** What bodies share. */
export interface BodyLimits {
  /** Bytes of bodies in memory. */
  readonly room: FairShare;
  /** Where a body waits for its turn. */
  readonly turns: FairQueue;
}

/**
 * The bytes of a JSON body. Room for them is taken before the first is read, and given back when the response closes; another
 * address that needs it more may cut the connection off. Rejects with BodyError before the limit is exceeded, whatever the
 * headers claim.
 */
export async function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { room, turns }: BodyLimits,
): Promise<Buffer> {
  expectJson(request);
  const announced = announcedBytes(request);
  if (announced !== undefined && announced > MAX_BODY_BYTES) throw tooLarge(`${announced} bytes were announced`);
  const giveBack = room.take(addressOf(request), announced ?? MAX_BODY_BYTES, () => request.socket.destroy());
  if (!giveBack) throw new BodyError(503, 'Overloaded', 'too many bytes of other calls are in memory; try again');
  response.once('close', giveBack);
  const nextTurn = (): Promise<void> => turns.run(addressOf(request), () => {}, PIECE_COST_MS);
  const body = await collectBody(request, { maxBytes: MAX_BODY_BYTES, nextTurn });
  if (!body) throw tooLarge('more was sent');
  return body;
}

/** Whom a call is counted for. */
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
  return new BodyError(413, 'BodyTooLarge', `the body may have ${MAX_BODY_BYTES} bytes at most; ${found}`);
}
