import type { IncomingMessage } from 'node:http';
import { CodedError } from './errors.ts';

/** Size of the first buffer if the body's length is unknown. */
const FIRST_BYTES = 64 * 1024;
/** After this many bytes, reading waits for `nextTurn`. */
const PIECE_BYTES = 256 * 1024;

interface BodyOptions {
  readonly maxBytes: number;
  /** Resolves when the next 256 KiB may be read; a rejection stops reading. Default: reads without waiting. */
  readonly nextTurn?: () => Promise<void>;
}

/**
 * Reads the body of a request; undefined if it has more than `maxBytes`. Never holds more in memory, whatever the headers claim; the
 * caller limits how many bodies it reads at a time. Rejects with CodedError `IncompleteBody` if the connection ends first, or with the
 * error of the connection or of `nextTurn`.
 */
export function collectBody(
  request: IncomingMessage,
  { maxBytes, nextTurn }: BodyOptions,
): Promise<Buffer | undefined> {
  const announced = announcedBytes(request);
  if (announced !== undefined && announced > maxBytes) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    // One buffer, because chunks may have one byte each, and each kept chunk costs a hundred.
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
      // The event follows every request; creating an error with a stack each time would dominate the cost.
      if (!request.complete) fail(new CodedError('IncompleteBody', 'the connection ended before the body did'));
    });
  });
}

/** Undefined if the body is chunked; Node rejects requests that claim both. */
export function announcedBytes({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
}

function grown(bytes: Buffer, needed: number, maxBytes: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(Math.max(needed, 2 * bytes.length), maxBytes));
  bytes.copy(larger);
  return larger;
}
