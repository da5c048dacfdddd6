import type { IncomingMessage } from 'node:http';
import { CodedError } from './errors.ts';
import { parseJson } from './safe-json.ts';

/** Larger bodies, and those of unknown length, use memory that `freeBody` returns at once. */
const SMALL_BYTES = 64 * 1024;
/** `collectBody` waits for `nextTurn` after each piece. */
const PIECE_BYTES = 256 * 1024;

interface BodyOptions {
  readonly maxBytes: number;
  /** When the next 256 KiB may be read; a rejection stops reading. */
  readonly nextTurn?: () => Promise<void>;
}

/**
 * Undefined for a body over `maxBytes`; no more memory is used, whatever the headers claim.
 * The caller limits how many it reads at a time. Rejects with CodedError `IncompleteBody`, the
 * error of `nextTurn`, or RangeError without memory.
 */
export function collectBody(
  request: IncomingMessage,
  { maxBytes, nextTurn }: BodyOptions,
): Promise<Buffer | undefined> {
  const announced = announcedBytes(request);
  if (announced !== undefined && announced > maxBytes) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    // One buffer: a chunk may have a single byte, and keeping it costs about a hundred.
    const isSmall = announced !== undefined && announced <= SMALL_BYTES;
    const memory = isSmall ? undefined : new ArrayBuffer(0, { maxByteLength: announced ?? maxBytes });
    let bytes = memory ? Buffer.from(memory) : Buffer.allocUnsafe(announced ?? 0);
    let length = 0;
    let pauseAt = PIECE_BYTES;
    const stop = (): void => {
      request.removeListener('data', onData);
      freeBody(bytes);
    };
    const fail = (error: unknown): void => {
      stop();
      reject(error);
    };
    const reserve = (needed: number): void => {
      if (!memory || needed <= memory.byteLength) return;
      memory.resize(Math.min(Math.ceil(needed / PIECE_BYTES) * PIECE_BYTES, memory.maxByteLength));
      bytes = Buffer.from(memory);
    };
    const onData = (chunk: Buffer): void => {
      const needed = length + chunk.length;
      if (needed > maxBytes) {
        stop();
        resolve(undefined);
        return;
      }
      try {
        reserve(needed);
      } catch (error) {
        // No memory is left. An error thrown by a listener would end the process.
        fail(error);
        return;
      }
      chunk.copy(bytes, length);
      length = needed;
      if (!nextTurn || length < pauseAt) return;
      pauseAt = length + PIECE_BYTES;
      request.pause();
      nextTurn().then(() => request.resume(), fail);
    };
    request.on('data', onData);
    request.once('end', () => resolve(bytes.subarray(0, length)));
    const incomplete = (): CodedError => new CodedError('IncompleteBody', 'the connection ended before the body did');
    request.once('error', (error) => fail(request.complete ? error : incomplete()));
    request.once('close', () => {
      // `close` follows every request; an error with a stack each time would dominate the cost.
      if (!request.complete) fail(incomplete());
    });
  });
}

/** 0 without a header, undefined if chunked. Node rejects requests that claim both. */
export function announcedBytes({ headers }: IncomingMessage): number | undefined {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : undefined;
}

/** Empties the body. A flood would otherwise use several times its size until a collection. */
export function freeBody({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.resizable) buffer.resize(0);
}

/** `parseBody` copies into it: a scan of resizable memory takes four times as long. */
let scratch = Buffer.alloc(0);

/** Frees the body. Limits as in `parseJson`. Throws JsonError. */
export function parseBody(body: Buffer): unknown {
  if (scratch.length < body.length) scratch = Buffer.allocUnsafeSlow(body.length);
  const bytes = scratch.subarray(0, body.copy(scratch));
  freeBody(body);
  return parseJson(bytes);
}
