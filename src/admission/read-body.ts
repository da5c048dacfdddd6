import type { IncomingMessage } from 'node:http';
import { CodedError } from '../kit/errors.ts';

/** etcd takes objects up to 1.5 MiB, and an UPDATE carries two of them. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** A request that is not worth parsing; `status` is what HTTP calls it. */
export class BodyError extends CodedError {
  override readonly name = 'BodyError';
  constructor(
    readonly status: 400 | 413 | 415,
    code: string,
    message: string,
  ) {
    super(code, message);
  }
}

/** The bytes of a JSON body. Rejects with BodyError before the limit is exceeded, whatever the headers claim. */
export async function readBody(request: IncomingMessage, limit = MAX_BODY_BYTES): Promise<Buffer> {
  expectJson(request);
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limit) throw tooLarge(`${announced} bytes were announced`, limit);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const fail = (error: unknown): void => {
      request.removeListener('data', onData);
      // What was read so far is let go of; the caller closes the connection.
      chunks.length = 0;
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limit) fail(tooLarge('more was sent', limit));
      else chunks.push(chunk);
    };
    request.on('data', onData);
    request.once('end', () => resolve(Buffer.concat(chunks, length)));
    request.once('error', fail);
    request.once('close', () => {
      // It comes after every request; an error and its stack for each would be the dearest part of most.
      if (!request.complete) fail(new BodyError(400, 'IncompleteBody', 'the connection ended before the body did'));
    });
  });
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

function tooLarge(found: string, limit: number): BodyError {
  return new BodyError(413, 'BodyTooLarge', `the body may have ${limit} bytes at most; ${found}`);
}
