import { hash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { own } from '../../kit/json-value.ts';
import type { Finding, RecordingsReport } from './report.ts';

const namespacePattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const sessionPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The name of a folder of recordings can be a namespace. */
export const isRecordingFolder = (name: string): boolean => namespacePattern.test(name);

/** The server builds paths only from such names, so that no path leaves the folder. */
export const isRecordingName = (namespace: unknown, session: unknown): boolean =>
  typeof namespace === 'string' &&
  namespacePattern.test(namespace) &&
  typeof session === 'string' &&
  sessionPattern.test(session);

/** In a bucket, such as `000001.cast`. `number`: from 1; throws Error beyond 999,999. */
export function partName(number: number): string {
  if (number > MAX_PARTS) throw new Error(`the recording has over ${MAX_PARTS} parts`);
  return `${String(number).padStart(6, '0')}.cast`;
}

export const partNumber = (name: string): number | undefined =>
  /^\d{6}\.cast$/.test(name) ? Number(name.slice(0, 6)) : undefined;

interface Chunk {
  readonly bytes: number;
  readonly sha256: string;
}

/** What the journal says about one recording. */
interface Expected {
  /** `NAMESPACE/SESSION`. */
  readonly name: string;
  /** By number, from 1. */
  readonly chunks: Map<number, Chunk>;
  /** Chunks of the complete recording; set by the line that says so. */
  total: number | undefined;
  deleted: boolean;
}

/** Bytes. The journal has a line with the SHA-256 of each chunk. */
export const maxChunk = 1024 * 1024;
const MAX_CHUNKS = 1_000_000;
const MAX_PARTS = 999_999;

/** Checks recordings against the journal. Pass every line, then call `check`. */
export class RecordingsVerifier {
  /** By `NAMESPACE/SESSION`. */
  readonly #expected = new Map<string, Expected>();
  readonly #findings: Finding[] = [];
  readonly #only: string | undefined;

  /** `only`: a session. Default: all. */
  constructor(only?: string) {
    this.#only = only;
  }

  /** Reads a line, perhaps of another program. `text`: each character is a byte (latin1). */
  line(text: string): void {
    if (!text.includes('"event":"session"')) return;
    let record: unknown;
    try {
      record = JSON.parse(Buffer.from(text.slice(text.indexOf('{')), 'latin1').toString('utf8'));
    } catch {
      return;
    }
    const verdict = own(record, 'verdict');
    const namespace = own(own(record, 'what'), 'namespace');
    const session = own(record, 'session');
    const isAboutRecording = verdict === 'recorded' || verdict === 'unrecorded' || verdict === 'deleted';
    if (!isAboutRecording || !isRecordingName(namespace, session)) return;
    if (this.#only !== undefined && session !== this.#only) return;
    const name = `${String(namespace)}/${String(session)}`;
    const expected = this.#expected.get(name) ?? { name, chunks: new Map(), total: undefined, deleted: false };
    this.#expected.set(name, expected);
    if (verdict === 'deleted') expected.deleted = true;
    else if (verdict === 'recorded') this.#addChunk(expected, record);
  }

  /** `partial`: older lines of the journal may be absent. Rejects if a file cannot be read. */
  async check(folder: string, partial = false): Promise<{ findings: readonly Finding[]; report: RecordingsReport }> {
    const report = { complete: 0, incomplete: 0, deleted: 0, unchecked: 0, unprovenBytes: 0 };
    const present = await recordingsIn(folder);
    report.unchecked = [...present.keys()].filter((name) => !this.#expected.has(name)).length;
    for (const expected of this.#expected.values()) {
      const { name, total } = expected;
      const files = present.get(name);
      // An interrupted deletion may leave parts.
      if (expected.deleted) {
        report.deleted += 1;
        continue;
      }
      if (!files) {
        // A recording may be lost before its file exists.
        if (expected.chunks.size > 0)
          this.#addFinding(
            'RecordingMissing',
            name,
            'it is not in the folder, although the journal has lines about its chunks and none about its deletion; if it is stored elsewhere, copy it to the folder; otherwise it was removed without the gateway',
          );
        continue;
      }
      if (partial && !expected.chunks.has(1)) {
        report.unchecked += 1;
        continue;
      }
      const differenceOrBytes = await compare(files, expected);
      if (typeof differenceOrBytes === 'string') this.#addFinding('RecordingChanged', name, differenceOrBytes);
      else if (total !== undefined) report.complete += 1;
      else {
        report.incomplete += 1;
        report.unprovenBytes += differenceOrBytes;
      }
    }
    return { findings: this.#findings, report };
  }

  #addChunk(expected: Expected, record: unknown): void {
    const number = own(record, 'chunk');
    if (typeof number !== 'number' || !Number.isInteger(number) || number < 1 || number > MAX_CHUNKS) return;
    if (own(record, 'complete') === true) {
      expected.total = number;
      return;
    }
    const bytes = own(record, 'bytes');
    const sha256 = own(record, 'sha256');
    if (typeof bytes !== 'number' || !(bytes > 0 && bytes <= maxChunk) || typeof sha256 !== 'string') return;
    const known = expected.chunks.get(number);
    if (known && (known.bytes !== bytes || known.sha256 !== sha256))
      this.#addFinding(
        'RecordingChanged',
        expected.name,
        `the journal has two different lines about its chunk ${number}`,
      );
    else expected.chunks.set(number, { bytes, sha256 });
  }

  #addFinding(code: Extract<Finding['code'], `Recording${string}`>, name: string, message: string): void {
    this.#findings.push({ code, message: `${name}.cast: ${message}` });
  }
}

/** Why the files differ from the lines, or the number of bytes after the last chunk. */
async function compare(files: readonly string[], { chunks, total }: Expected): Promise<string | number> {
  // Math.max(...) fails with hundreds of thousands of arguments.
  const last = total ?? [...chunks.keys()].reduce((most, number) => Math.max(most, number), 0);
  let number = 1;
  let rest: Buffer = Buffer.alloc(0);
  let bytesAfterLast = 0;
  for await (const part of bytesOf(files)) {
    rest = rest.length === 0 ? part : Buffer.concat([rest, part]);
    for (let chunk = chunks.get(number); number <= last; chunk = chunks.get(number)) {
      if (!chunk)
        return `the journal has no line about its chunk ${number}; if older files have this line, give these files, too${number === 1 ? '; if you do not have them, --partial accepts that they are missing' : ''}`;
      if (rest.length < chunk.bytes) break;
      const isEqual = hash('sha256', rest.subarray(0, chunk.bytes), 'hex') === chunk.sha256;
      if (!isEqual) return `chunk ${number} was changed, removed, or moved`;
      rest = rest.subarray(chunk.bytes);
      number += 1;
    }
    if (number <= last) continue;
    bytesAfterLast += rest.length;
    rest = Buffer.alloc(0);
    if (bytesAfterLast > 0 && total !== undefined) return 'bytes follow its last chunk';
  }
  return number <= last ? `it ends before chunk ${number} of ${last} is complete` : bytesAfterLast;
}

async function* bytesOf(files: readonly string[]): AsyncIterable<Buffer> {
  for (const file of files) yield* createReadStream(file) as AsyncIterable<Buffer>;
}

/** By `NAMESPACE/SESSION`: one or, if copied from a bucket, its parts in order. */
async function recordingsIn(folder: string): Promise<Map<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>();
  for (const namespace of await entriesOf(folder)) {
    if (!namespace.isDirectory() || !isRecordingFolder(namespace.name)) continue;
    for (const entry of await entriesOf(join(folder, namespace.name))) {
      const session = entry.name.replace(/\.cast$/, '');
      if (!isRecordingName(namespace.name, session)) continue;
      const name = `${namespace.name}/${session}`;
      const path = join(folder, namespace.name, entry.name);
      const isFile = entry.isFile() && session !== entry.name;
      const files = isFile ? [path] : entry.isDirectory() ? await partsIn(path) : [];
      // If a recording has both forms, `compare` reads the bytes of both.
      if (files.length > 0) found.set(name, [...(found.get(name) ?? []), ...files]);
    }
  }
  return found;
}

async function partsIn(folder: string): Promise<string[]> {
  const names = (await entriesOf(folder)).filter((entry) => entry.isFile()).map(({ name }) => name);
  return names
    .filter((name) => partNumber(name) !== undefined)
    .sort()
    .map((name) => join(folder, name));
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  for await (const entry of await opendir(folder)) entries.push(entry);
  return entries;
}
