/** Why the journal is not as it was written. Stable. */
type FindingCode =
  /** The line does not fit its own hash. */
  | 'Changed'
  /** The line does not continue the one before: one of the two was replaced. */
  | 'Broken'
  /** Lines are not there. */
  | 'Missing'
  /** The line is not in its place, or is there twice. */
  | 'OutOfOrder'
  /** The line reads like an audit record, but no chain has written it. */
  | 'Inserted'
  /** A signed head says something else than the line. */
  | 'HeadMismatch'
  /** A head is not signed by the key that it names, or by none of those that were given. */
  | 'BadHead';

/** A line of a file, from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

export const place = ({ file, line }: Place): string => `${file}:${line}`;

export interface Finding {
  readonly code: FindingCode;
  readonly message: string;
  readonly chain?: string;
  /** Where to look; absent when there is nothing to look at. */
  readonly at?: Place;
}

/** What is known of one chain. */
export interface ChainReport {
  readonly chain: string;
  /** Name of the replica, as its head has it. */
  readonly replica?: string;
  /** First and last number among the lines that are here; both 0 when there are none. */
  readonly first: number;
  readonly last: number;
  /** Number up to which a signed head vouches for the lines; 0 when none does. */
  readonly signedTo: number;
  /** Lines after that: nothing shows whether they are as they were written, or whether there were more. */
  readonly unproven: number;
  /** Lines that could not be written at the time, as the chain itself says. */
  readonly lost: number;
}

export interface VerifyReport {
  /** `changed`: there are findings. `unsigned`: there are none, but a chain has no signed head at all. */
  readonly verdict: 'intact' | 'unsigned' | 'changed';
  readonly findings: readonly Finding[];
  readonly chains: readonly ChainReport[];
  /** Lines that broke off when they were written; they hold no record. */
  readonly stumps: readonly Place[];
  /** Public keys that signed the heads. */
  readonly keys: readonly string[];
  /** Findings that were left out of the list. */
  readonly more: number;
}
