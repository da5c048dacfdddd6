/** Stable. */
type FindingCode =
  /** The line does not match its own hash. */
  | 'Changed'
  /** It does not continue the previous one: one of the two was replaced. */
  | 'Broken'
  | 'Missing'
  /** At the wrong position, or twice. */
  | 'OutOfOrder'
  /** Like an audit record, but of no chain. */
  | 'Inserted'
  /** A signed head contradicts the line. */
  | 'HeadMismatch'
  /** Not signed by the key that it names, of a key that was not given, or no head at all. */
  | 'BadHead'
  /** It differs from its lines, or a line of a chunk is absent or contradicts another. */
  | 'RecordingChanged'
  /** Its chunks have lines, its deletion has none, and it is not in the folder. */
  | 'RecordingMissing';

/** Numbers start at 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

export const place = ({ file, line }: Place): string => `${file}:${line}`;

export interface Finding {
  readonly code: FindingCode;
  readonly message: string;
  readonly chain?: string;
  /** Absent if it concerns no present line. */
  readonly at?: Place;
}

export interface ChainReport {
  readonly chain: string;
  /** From its newest head. */
  readonly replica?: string;
  /** Of the lines in the given files; both 0 if there are none. */
  readonly first: number;
  readonly last: number;
  /** The last line that a signed head covers; 0 if none does. */
  readonly signedTo: number;
  /** Lines after `signedTo`, which could be replaced, or removed up to the last one. */
  readonly unproven: number;
  /** Lines that could not be written, as recorded in the chain. */
  readonly lost: number;
}

/** Printed by `drawbridge audit verify --output=json`. */
export interface VerifyReport {
  /**
   * `changed`: findings. `intact`: none, and a signed head covers a line of each chain. `unsigned`:
   * none, but a chain without such a head or, in a whole journal, a recording without lines.
   */
  readonly verdict: 'intact' | 'unsigned' | 'changed';
  /** At most 1,000; `more` counts the others. */
  readonly findings: readonly Finding[];
  readonly chains: readonly ChainReport[];
  /** Incomplete lines of failed writes, at most 1,000; they contain no record. */
  readonly stumps: readonly Place[];
  /** They verify the heads, each 32 bytes in base64. */
  readonly keys: readonly string[];
  readonly more: number;
  /** If they were checked. */
  readonly recordings?: RecordingsReport;
}

export interface RecordingsReport {
  /** Unchanged from the header to the end. */
  readonly complete: number;
  /** Unchanged so far, but without an end: the session is open, or its end was lost. */
  readonly incomplete: number;
  /** By retention, as the journal says. */
  readonly deleted: number;
  /** The given files have no line about them, or only later ones. */
  readonly unchecked: number;
  /** Of incomplete recordings, without a line: a change is not detectable. */
  readonly unprovenBytes: number;
}
