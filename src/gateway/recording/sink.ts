import type { Readable } from 'node:stream';
import { quote } from '../../kit/errors.ts';

export interface RecordingName {
  /** The grant's. */
  readonly namespace: string;
  /** A UUID. */
  readonly session: string;
}

/** Where recordings are stored. */
export interface RecordingSink {
  /** How long output may wait in the recorder; a killed process loses it. */
  readonly flushMs: number;
  /** Resolves once name and bytes survive a crash of the machine. Rejects if the name exists. */
  create(name: RecordingName, first: Buffer): Promise<RecordingFile>;
  /** What is stored so far, if anything. The caller must read or destroy the stream. */
  read(name: RecordingName): Promise<Readable | undefined>;
}

/** A recording that is being written. Calls must not overlap. */
export interface RecordingFile {
  /** Until `close`, a crash may lose the bytes. Call `close` even after a rejection. */
  append(bytes: Buffer): Promise<void>;
  /** Makes all bytes durable. */
  close(): Promise<void>;
}

export interface StoredRecording extends RecordingName {
  /** When its last byte was written, epoch ms. NaN if the storage does not say. */
  readonly writtenMs: number;
}

export interface RecordingArchive {
  /** In any order. Skips everything else in the storage. */
  list(): AsyncIterable<StoredRecording>;
  /** Also resolves if the recording does not exist. */
  delete(name: RecordingName): Promise<void>;
}

/** For a name that `isRecordingName` denies. */
export const invalidName = ({ namespace, session }: RecordingName): Error =>
  new Error(
    `cannot store recording ${quote(`${namespace}/${session}`)}; the namespace must be a DNS label, and the session a UUID`,
  );
