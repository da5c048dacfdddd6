import type { Readable } from 'node:stream';

/** The name of a recording. */
export interface RecordingName {
  /** Namespace of the grant. */
  readonly namespace: string;
  /** The session: a UUID. */
  readonly session: string;
}

/** Where recordings are stored. */
export interface RecordingSink {
  /** Creates the recording with its first bytes. Resolves once both survive a crash of the machine. Rejects if the name exists. */
  create(name: RecordingName, first: Buffer): Promise<RecordingFile>;
  /**
   * The bytes that are stored so far, in order; undefined if there is no recording of that name. The caller must read or destroy the stream.
   * Rejects, or ends the stream, with the error of the storage.
   */
  read(name: RecordingName): Promise<Readable | undefined>;
}

/** A recording that is being written. Calls must not overlap. */
export interface RecordingFile {
  /**
   * Writes the bytes in order. Resolves once they are written; a crash of the machine may lose them until `close`. Rejects with the error of
   * the storage; the caller must still call `close`.
   */
  append(bytes: Buffer): Promise<void>;
  /** Makes all bytes durable, and closes the recording. */
  close(): Promise<void>;
}
