/** Why a write or a registration is refused, for the person who meets it. */
export interface Violation {
  /** Stable. */
  readonly code: ViolationCode;
  /** What was found, what is allowed, what to do. */
  readonly message: string;
  /** JSON pointer, or JSON path of a registration's field. */
  readonly field?: string;
  /** HTTP status of the refusal. */
  readonly status: 403 | 413 | 422;
}

export type ViolationCode =
  /** The credential is not that of a run that is on: its run is over, was replaced, or never was. */
  | 'NoSuchRun'
  /** A component writes what it does not own: nothing of the patch is taken. */
  | 'ForeignPath'
  /** A published `secretRef` names another Secret than the one made for this entry. */
  | 'ForeignSecret'
  | 'EntryTooLarge'
  /** Of registrations. */
  | 'PathTaken'
  | 'OwnOutputRead'
  | 'HasRuns'
  /** Of a supplied kubeconfig: whoever named the Secret may not read it. */
  | 'SecretNotReadable';

/** The code that a dry-run write without a run has to be refused with, before anything is dispatched. */
export const noSuchRunCode: ViolationCode = 'NoSuchRun';
