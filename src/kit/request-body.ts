import type { IncomingMessage } from 'node:http';
import { CodedError } from './errors.ts';

/** First buffer of a body whose length is not announced. */
const FIRST_BYTES = 64 * 1024;
/** After so many bytes the rest of a body waits for its turn. */
const PIECE_BYTES = 256 * 1024;

interface BodyOptions {
  readonly maxBytes: number;
  /** Resolves when the next 256 KiB may be read. A rejection ends the reading. Default: they are read at once. */
  readonly nextTurn?: () => Promise<void>;
}

/**
 * The bytes of a request's body; undefined when it has more than `maxBytes`. No more than that are in memory, whatever the headers
 * claim; the caller bounds how many bodies it reads at a time. Rejects with CodedError `IncompleteBody` when the connection ends first,
 * and with the error of the connection or of `nextTurn`.
 */
export function collectBody(
  request: IncomingMessage,
  { maxBytes, nextTurn }: BodyOptions,
): Promise<Buffer | undefined> {
  const announced = announcedBytes(request);
  if (announced !== undefined && announced > maxBytes) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    // One buffer: chunks may hold one byte each, and each chunk that is kept costs a hundred.
    let bytes: Buffer = Buffer.allocUnsafe(announced ?? Math.min(FIRST_BYTES, maxBytes));
    let length = 0;
    let pauseAt = PIECE_BYTES;
    const fail = (error: unknown): void => {
      request.removeListener('data', onData);
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > maxBytes) {
        request.removeListener('data', onData);
        resolve(undefined);
        return;
      }
      if (needed > bytes.length) bytes = grown(bytes.subarray(0, length), needed, maxBytes);
      chunk.copy(bytes, length);
      length = needed;
      if (!nextTurn || length < pauseAt) return;
      pauseAt = length + PIECE_BYTES;
      request.pause();
      nextTurn().then(() => request.resume(), fail);
    };
    request.on('data', onData);
    request.once('end', () => resolve(bytes.subarray(0, length)));
    request.once('error', fail);
    request.once('close', () => {
      // It comes after every request; an error and its stack for each would be the dearest part of most.
      if (!request.complete) fail(new CodedError('IncompleteBody', 'the connection ended before the body did'));
    });
  });
}

/** Undefined where the body comes in chunks; Node refuses requests that claim both. */
export function announcedBytes({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
}

function grown(bytes: Buffer, needed: number, maxBytes: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(needed, 2 * bytes.length), maxBytes));
  bytes.copy(larger);
  return larger;
}
