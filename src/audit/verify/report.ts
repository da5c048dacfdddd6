/** Stable code of a difference between the journal and what the server wrote. */
type FindingCode =
  /** The line does not match its own hash. */
  | 'Changed'
  /** The line does not continue the previous one: one of the two was replaced. */
  | 'Broken'
  /** Lines are absent. */
  | 'Missing'
  /** The line is at the wrong position, or present twice. */
  | 'OutOfOrder'
  /** The line looks like an audit record, but belongs to no chain. */
  | 'Inserted'
  /** A signed head contradicts the line. */
  | 'HeadMismatch'
  /** A head is not signed by the key that it names, its key is not one of the given keys, or an entry of the ConfigMap is not a head. */
  | 'BadHead'
  /** A recording differs from its lines in the journal, the line of one of its chunks is absent, or two lines about a chunk differ. */
  | 'RecordingChanged'
  /** The journal has lines about chunks of a recording that is not in the folder, and no line about its deletion. */
  | 'RecordingMissing';

/** A line of a file; numbers start at 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

/** The place as text: `FILE:LINE`. */
export const place = ({ file, line }: Place): string => `${file}:${line}`;

/** A difference between the journal and what the server wrote. */
export interface Finding {
  readonly code: FindingCode;
  readonly message: string;
  readonly chain?: string;
  /** The line of the finding; absent if it concerns no present line. */
  readonly at?: Place;
}

/** The verification result of one chain. */
export interface ChainReport {
  readonly chain: string;
  /** Name of the replica, from its newest head; absent if the chain has no head. */
  readonly replica?: string;
  /** First and last number of the lines in the given files; both 0 if there are none. */
  readonly first: number;
  readonly last: number;
  /** Number of the last line that a signed head covers; 0 if none does. */
  readonly signedTo: number;
  /** Number of given lines after `signedTo`. No head covers them, so they could be replaced or removed, from any of them to the last. */
  readonly unproven: number;
  /** Number of lines that could not be written, as recorded in the chain. */
  readonly lost: number;
}

/** The result of a verification, which `drawbridge audit verify --output=json` prints. */
export interface VerifyReport {
  /**
   * `intact`: there are no findings, and in each chain with given lines, a signed head covers at least one. `unsigned`: there are no
   * findings, but in some chain no signed head covers a given line, or, unless the journal is partial, a recording has no line. `changed`:
   * there are findings.
   */
  readonly verdict: 'intact' | 'unsigned' | 'changed';
  /** At most 1,000; `more` counts the others. */
  readonly findings: readonly Finding[];
  readonly chains: readonly ChainReport[];
  /** Incomplete lines of failed writes, at most 1,000; they contain no record. */
  readonly stumps: readonly Place[];
  /** Public keys that verify the heads, each 32 bytes in base64. */
  readonly keys: readonly string[];
  /** Number of findings beyond the listed ones. */
  readonly more: number;
  /** The recordings, if they were checked. */
  readonly recordings?: RecordingsReport;
}

/** The numbers of recordings by state. */
export interface RecordingsReport {
  /** Unchanged from the header to the end. */
  readonly complete: number;
  /**
   * Unchanged as far as lines of the journal cover them, but without an end. For example, the session is open, its recording was lost, or
   * the process was killed.
   */
  readonly incomplete: number;
  /** Deleted by retention, as a line of the journal says. */
  readonly deleted: number;
  /** Not checked, because the given files have no line about them, or only later ones. */
  readonly unchecked: number;
  /** Bytes of incomplete recordings that no line of the journal covers. A change of them is not detectable. */
  readonly unprovenBytes: number;
}
