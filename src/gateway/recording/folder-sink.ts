import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isRecordingFolder, isRecordingName } from '../../audit/verify/recordings.ts';
import {
  invalidName,
  type RecordingArchive,
  type RecordingFile,
  type RecordingName,
  type RecordingSink,
  type StoredRecording,
} from './sink.ts';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** `FOLDER/NAMESPACE/SESSION.cast`, which only the user of the process may read. */
export class FolderSink implements RecordingSink, RecordingArchive {
  readonly flushMs = 1000;
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async create(name: RecordingName, first: Buffer): Promise<RecordingFile> {
    const { namespace, session } = name;
    if (!isRecordingName(namespace, session)) throw invalidName(name);
    const folder = join(this.#folder, namespace);
    const isNew = await makeFolder(folder);
    const file = await open(join(folder, `${session}.cast`), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      await writeAll(file, first);
      await file.sync();
      // A new file survives a crash of the machine only if its folder is synced, too.
      await syncFolder(folder);
      if (isNew) await syncFolder(this.#folder);
    } catch (error) {
      await file.close().catch(() => {});
      throw error;
    }
    return {
      append: (bytes) => writeAll(file, bytes),
      close: async () => {
        try {
          await file.sync();
        } finally {
          await file.close();
        }
      },
    };
  }

  async read({ namespace, session }: RecordingName): Promise<Readable | undefined> {
    if (!isRecordingName(namespace, session)) return undefined;
    const folder = join(this.#folder, namespace);
    if (!(await lstat(folder).catch(absent))?.isDirectory()) return undefined;
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    const file = await open(join(folder, `${session}.cast`), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(absent);
    if (!file) return undefined;
    const found = await file.stat();
    if (found.isFile()) return file.createReadStream();
    await file.close();
    return undefined;
  }

  /** Only real folders and files: follows no link. */
  async *list(): AsyncIterable<StoredRecording> {
    for await (const folder of await opendir(this.#folder)) {
      const namespace = folder.name;
      if (!folder.isDirectory() || !isRecordingFolder(namespace)) continue;
      for await (const entry of await opendir(join(this.#folder, namespace))) {
        const session = entry.name.replace(/\.cast$/, '');
        if (!entry.isFile() || session === entry.name || !isRecordingName(namespace, session)) continue;
        // Another replica may have deleted the recording meanwhile.
        const found = await lstat(this.#path({ namespace, session })).catch(absent);
        if (found) yield { namespace, session, writtenMs: found.mtimeMs };
      }
    }
  }

  delete(name: RecordingName): Promise<void> {
    return rm(this.#path(name), { force: true });
  }

  #path({ namespace, session }: RecordingName): string {
    return join(this.#folder, namespace, `${session}.cast`);
  }
}

/** For a name that does not exist or is a link; throws every other error. */
function absent(error: unknown): undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOENT' && code !== 'ELOOP') throw error;
}

/** Returns whether it created the folder. Rejects if the name is a link or a file. */
async function makeFolder(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { mode: 0o700 });
    return true;
  } catch (error) {
    const found = await lstat(folder).catch(() => undefined);
    if (found?.isDirectory()) return false;
    throw found ? new Error(`${folder} is not a folder; move it to another place`) : error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A call can write a part of the bytes, for example if the disk is nearly full. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let offset = 0; offset < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, offset, bytes.length - offset);
    offset += bytesWritten;
  }
}
