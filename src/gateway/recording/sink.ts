import type { Readable } from 'node:stream';
import { quote } from '../../kit/errors.ts';

/** The name of a recording. */
export interface RecordingName {
  /** Namespace of the grant. */
  readonly namespace: string;
  /** The session: a UUID. */
  readonly session: string;
}

/** Where recordings are stored. */
export interface RecordingSink {
  /** How long the recorder collects output at most before it writes, milliseconds. If the process is killed, unwritten output is lost. */
  readonly flushMs: number;
  /** Creates the recording with its first bytes. Resolves once both survive a crash of the machine. Rejects if the name exists. */
  create(name: RecordingName, first: Buffer): Promise<RecordingFile>;
  /**
   * The bytes that are stored so far, in order; undefined if there is no recording of that name. The caller must read or destroy the
   * stream. Rejects, or ends the stream, with the error of the storage.
   */
  read(name: RecordingName): Promise<Readable | undefined>;
}

/** A recording that is being written. Calls must not overlap. */
export interface RecordingFile {
  /**
   * Writes the bytes after those of earlier calls. Resolves once they are written; until `close`, a crash of the machine may lose them.
   * Rejects with the error of the storage. Then the caller must still call `close`.
   */
  append(bytes: Buffer): Promise<void>;
  /** Makes all bytes durable, and closes the recording. */
  close(): Promise<void>;
}

/** A recording that exists. */
export interface StoredRecording extends RecordingName {
  /** When its last byte was written, epoch ms. NaN if the storage does not say. */
  readonly writtenMs: number;
}

/** The stored recordings, for their deletion. */
export interface RecordingArchive {
  /** All recordings, in any order. Skips everything else in the storage. Throws the error of the storage. */
  list(): AsyncIterable<StoredRecording>;
  /** Deletes the recording. Also resolves if it does not exist. */
  delete(name: RecordingName): Promise<void>;
}

/** The error of a sink for a name that `isRecordingName` denies. */
export const invalidName = ({ namespace, session }: RecordingName): Error =>
  new Error(
    `cannot store recording ${quote(`${namespace}/${session}`)}; the namespace must be a DNS label, and the session a UUID`,
  );
