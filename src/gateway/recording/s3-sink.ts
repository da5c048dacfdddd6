import { Readable } from 'node:stream';
import { isRecordingName, partName, partNumber } from '../../audit/verify/recordings.ts';
import type { Clock } from '../../kit/clock.ts';
import { S3Bucket, type S3Location, type StoredObject } from './s3-bucket.ts';
import {
  invalidName,
  type RecordingArchive,
  type RecordingFile,
  type RecordingName,
  type RecordingSink,
  type StoredRecording,
} from './sink.ts';

/** Pages of a list, each of up to 1,000 parts, so that no server can answer forever. */
const MAX_PAGES = 10_000;

/** Objects cannot grow, so each write is a new one: `PREFIX/NAMESPACE/SESSION/000001.cast` … */
export class S3Sink implements RecordingSink, RecordingArchive {
  /** At most six requests a minute for an active session, and one more for each 64 KiB. */
  readonly flushMs = 10_000;
  readonly #bucket: S3Bucket;
  readonly #prefix: string;

  constructor({ prefix, ...location }: S3Location, clock: Clock) {
    this.#bucket = new S3Bucket(location, clock);
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
  }

  async create(name: RecordingName, first: Buffer): Promise<RecordingFile> {
    const folder = this.#folder(name);
    let number = 0;
    const append = async (bytes: Buffer): Promise<void> => {
      number += 1;
      await this.#bucket.put(`${folder}${partName(number)}`, bytes);
    };
    await append(first);
    return { append, close: async () => {} };
  }

  async read(name: RecordingName): Promise<Readable | undefined> {
    if (!isRecordingName(name.namespace, name.session)) return undefined;
    const folder = this.#folder(name);
    const keys = this.#list(folder);
    const first = await keys.next();
    if (first.done) return undefined;
    return Readable.from(this.#parts(folder, first.value.key, keys), { objectMode: false });
  }

  async *list(): AsyncIterable<StoredRecording> {
    let last: StoredRecording | undefined;
    for await (const { key, writtenMs } of this.#list(this.#prefix)) {
      const [namespace = '', session = '', part = '', ...rest] = key.slice(this.#prefix.length).split('/');
      if (!isRecordingName(namespace, session) || partNumber(part) === undefined || rest.length > 0) continue;
      if (last?.namespace === namespace && last.session === session) {
        last = { namespace, session, writtenMs: Math.max(last.writtenMs, writtenMs) };
        continue;
      }
      if (last) yield last;
      last = { namespace, session, writtenMs };
    }
    if (last) yield last;
  }

  async delete(name: RecordingName): Promise<void> {
    const keys: string[] = [];
    for await (const { key } of this.#list(this.#folder(name))) {
      keys.push(key);
      if (keys.length === 1000) await this.#bucket.delete(keys.splice(0));
    }
    if (keys.length > 0) await this.#bucket.delete(keys);
  }

  async *#parts(folder: string, first: string, later: AsyncIterable<StoredObject>): AsyncIterable<Buffer> {
    let number = 0;
    const read = async (key: string): Promise<Buffer> => {
      number += 1;
      const bytes = key === `${folder}${partName(number)}` ? await this.#bucket.get(key) : undefined;
      if (!bytes) throw new Error(`part ${number} of the recording is missing`);
      return bytes;
    };
    yield await read(first);
    for await (const { key } of later) yield await read(key);
  }

  /** In the order of their keys. */
  async *#list(prefix: string): AsyncGenerator<StoredObject, undefined> {
    let token: string | undefined;
    let last = Buffer.alloc(0);
    for (let page = 0; page < MAX_PAGES; page++) {
      const { objects, next } = await this.#bucket.list(prefix, token);
      for (const object of objects) {
        const key = Buffer.from(object.key);
        if (!object.key.startsWith(prefix) || Buffer.compare(key, last) <= 0)
          throw new Error(
            'the S3 server lists other keys than it was asked for, or in another order; check --s3-endpoint',
          );
        last = key;
        yield object;
      }
      if (next === undefined) return;
      token = next;
    }
    throw new Error(`the list of ${prefix} has over ${MAX_PAGES} pages`);
  }

  #folder({ namespace, session }: RecordingName): string {
    if (!isRecordingName(namespace, session)) throw invalidName({ namespace, session });
    return `${this.#prefix}${namespace}/${session}/`;
  }
}
