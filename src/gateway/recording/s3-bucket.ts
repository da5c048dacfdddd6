import { pipeline, Readable, Transform } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { own } from '../../kit/json-value.ts';
import { printable } from '../../kit/printable.ts';
import { shorten } from '../../kit/shorten.ts';

/** AWS, or another server that speaks the S3 protocol. */
export interface S3Location {
  readonly bucket: string;
  /** The folder of the keys, without outer slashes; empty: none. */
  readonly prefix: string;
  readonly region: string;
  /** https URL; without one: AWS in the region. */
  readonly endpoint: string | undefined;
}

export interface StoredObject {
  readonly key: string;
  /** Epoch ms, by the clock of the server; NaN if it does not say. */
  readonly writtenMs: number;
}

/** Limit of a call with its retries. */
const CALL_MS = 5000;
/** Short, so that a second attempt fits into the limit of the call. */
const CONNECT_MS = 2000;
const MAX_ATTEMPTS = 3;
/** Each open session writes one object at a time. */
const MAX_CONNECTIONS = 64;
/** Bytes: a page of 1,000 keys, or a part of a recording. */
const MAX_ANSWER = 4 * 1024 * 1024;
/** Characters of the reason in an error. */
const MAX_REASON = 200;

const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };

/**
 * Calls the bucket, with credentials from the first source of the AWS SDK that has some: the
 * environment, files, a ServiceAccount token (`AWS_WEB_IDENTITY_TOKEN_FILE`), the metadata service.
 * Follows no redirect. Errors omit the text of the answer, which may repeat headers of the request.
 */
export class S3Bucket {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #clock: Clock;

  constructor({ bucket, region, endpoint }: Omit<S3Location, 'prefix'>, clock: Clock) {
    this.#bucket = bucket;
    this.#clock = clock;
    this.#client = new S3Client({
      region,
      // Few servers besides AWS have a host name for each bucket.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
      maxAttempts: MAX_ATTEMPTS,
      logger: quiet,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        httpsAgent: { maxSockets: MAX_CONNECTIONS, keepAlive: true },
        logger: quiet,
      },
    });
    this.#client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        const body = own(result.response, 'body');
        if (body instanceof Readable) Object.assign(Object(result.response), { body: bounded(body) });
        return result;
      },
      { step: 'deserialize', priority: 'low', name: 'maxAnswer' },
    );
  }

  /** Rejects if the object exists. */
  async put(key: string, bytes: Buffer): Promise<void> {
    const input = { Bucket: this.#bucket, Key: key, Body: bytes, IfNoneMatch: '*' };
    try {
      await this.#call('PutObject', async (abortSignal) => {
        const { ETag } = await this.#client.send(new PutObjectCommand(input), { abortSignal });
        // A server that is not an S3 server may answer 200 to every call.
        if (!ETag) throw new Error('the answer has no ETag, so it is not that of an S3 server; check --s3-endpoint');
      });
    } catch (error) {
      // An earlier attempt may have created the object although its answer was lost.
      const isRepeated = error instanceof S3Error && error.attempts > 1 && [409, 412].includes(error.status ?? 0);
      if (!isRepeated || !(await this.get(key))?.equals(bytes)) throw error;
    }
  }

  async get(key: string): Promise<Buffer | undefined> {
    const input = { Bucket: this.#bucket, Key: key };
    try {
      return await this.#call('GetObject', async (abortSignal) => {
        const { Body } = await this.#client.send(new GetObjectCommand(input), { abortSignal });
        return Buffer.from((await Body?.transformToByteArray()) ?? []);
      });
    } catch (error) {
      if (error instanceof S3Error && error.status === 404 && error.name === 'NoSuchKey') return undefined;
      throw error;
    }
  }

  /** At most 1,000 objects, in the order of their keys. `next` is the `token` of the next page. */
  async list(prefix: string, token?: string): Promise<{ objects: StoredObject[]; next: string | undefined }> {
    const input = { Bucket: this.#bucket, Prefix: prefix, ContinuationToken: token };
    const page = await this.#call('ListObjectsV2', (abortSignal) =>
      this.#client.send(new ListObjectsV2Command(input), { abortSignal }),
    );
    const objects = (page.Contents ?? []).map(({ Key = '', LastModified }) => ({
      key: Key,
      writtenMs: LastModified?.getTime() ?? Number.NaN,
    }));
    return { objects, next: page.IsTruncated ? page.NextContinuationToken : undefined };
  }

  /** At most 1,000. An object that does not exist counts as deleted. */
  async delete(keys: readonly string[]): Promise<void> {
    const input = { Bucket: this.#bucket, Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true } };
    const { Errors: [failed] = [] } = await this.#call('DeleteObjects', (abortSignal) =>
      this.#client.send(new DeleteObjectsCommand(input), { abortSignal }),
    );
    if (failed) throw new S3Error('DeleteObjects', { name: failed.Code });
  }

  async #call<T>(what: string, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const cancel = this.#clock.schedule(CALL_MS, () => abort.abort());
    try {
      return await send(abort.signal);
    } catch (error) {
      throw abort.signal.aborted
        ? new S3Error(what, { message: `no answer within ${CALL_MS / 1000} s` })
        : new S3Error(what, error);
    } finally {
      cancel();
    }
  }
}

class S3Error extends Error {
  /** The code of the server, such as `AccessDenied`. */
  override readonly name: string;
  /** The HTTP status, if there was an answer. */
  readonly status: number | undefined;
  /** How often the call was sent, if known; otherwise 1. */
  readonly attempts: number;

  constructor(what: string, error: unknown) {
    const metadata = own(error, '$metadata');
    const status = own(metadata, 'httpStatusCode');
    const name = shorten(printable(String(own(error, 'name') ?? (error instanceof Error ? error.name : ''))), 64);
    const reason = error instanceof Error ? describe(error) : String(own(error, 'message') ?? name);
    super(
      `${what}: ${typeof status === 'number' ? `the S3 server answered ${status} ${name}` : shorten(printable(reason), MAX_REASON)}`,
    );
    this.name = name;
    this.status = typeof status === 'number' ? status : undefined;
    this.attempts = Number(own(metadata, 'attempts') ?? 1);
  }
}

/** Fails after more than `MAX_ANSWER` bytes. */
function bounded(body: Readable): Readable {
  let size = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      if (size > MAX_ANSWER) done(new Error(`the answer has over ${MAX_ANSWER} bytes`));
      else done(null, chunk);
    },
  });
  return pipeline(body, limit, () => {});
}
