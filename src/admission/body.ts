import type { IncomingMessage, ServerResponse } from 'node:http';
import { CodedError } from '../kit/errors.ts';
import type { FairShare } from '../kit/fair-share.ts';
import type { FairQueue } from './fair-queue.ts';

/** etcd takes objects up to 1.5 MiB, and an UPDATE carries two of them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** First buffer of a body whose length is not announced. */
const FIRST_BYTES = 64 * 1024;
/** After so many bytes the rest of a body waits for its turn: to decrypt and to copy them costs as long as a review. */
const PIECE_BYTES = 256 * 1024;
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
  return collect(request, Buffer.allocUnsafe(announced ?? FIRST_BYTES), nextTurn);
}

/** Whom a call is counted for. */
export const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress ?? '';

/** Copies what arrives into one buffer: chunks that were kept could be of one byte each, and a chunk costs a hundred. */
function collect(request: IncomingMessage, first: Buffer, nextTurn: () => Promise<void>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = first;
    let length = 0;
    let pauseAt = PIECE_BYTES;
    const fail = (error: unknown): void => {
      request.removeListener('data', onData);
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > MAX_BODY_BYTES) {
        fail(tooLarge('more was sent'));
        return;
      }
      if (needed > bytes.length) bytes = grown(bytes.subarray(0, length), needed);
      chunk.copy(bytes, length);
      length = needed;
      if (length < pauseAt) return;
      pauseAt = length + PIECE_BYTES;
      request.pause();
      nextTurn().then(() => request.resume(), fail);
    };
    request.on('data', onData);
    request.once('end', () => resolve(bytes.subarray(0, length)));
    request.once('error', fail);
    request.once('close', () => {
      // It comes after every request; an error and its stack for each would be the dearest part of most.
      if (!request.complete) fail(new BodyError(400, 'IncompleteBody', 'the connection ended before the body did'));
    });
  });
}

function grown(bytes: Buffer, needed: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(needed, 2 * bytes.length), MAX_BODY_BYTES));
  bytes.copy(larger);
  return larger;
}

/** Undefined where the body comes in chunks; Node refuses calls that claim both. */
function announcedBytes({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
}

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
