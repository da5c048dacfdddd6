/** What shell completion offers for a word. */
export type Candidates =
  | readonly string[]
  | 'templates'
  | 'requests'
  | 'unended requests'
  | 'sessions'
  | 'providers'
  | 'namespaces'
  | 'contexts'
  | 'files';

/** One flag, for the parser, the help, completion, and the reference. */
export interface FlagSpec {
  /** Without `--`. */
  readonly name: string;
  readonly short?: string;
  /** Placeholder of its value; absent for a flag without one. */
  readonly value?: string;
  /** Each value counts. Default: only the last one. */
  readonly repeated?: true;
  readonly help: string;
  /** Default: nothing. */
  readonly complete?: Candidates;
}

export interface ArgumentSpec {
  /** As the usage line shows it: `TEMPLATE`. */
  readonly name: string;
  readonly optional?: true;
  /** It takes all further arguments. Only the last one can. */
  readonly repeated?: true;
  /** Default: nothing. */
  readonly complete?: Candidates;
}

/** `NAME`, `pod/NAME`, or `exec/NAME`. */
export const requestArgument: ArgumentSpec = { name: 'REQUEST', complete: 'requests' };
/** The same, for a command that ended access cannot use. */
export const unendedArgument: ArgumentSpec = { ...requestArgument, complete: 'unended requests' };

/** One command, for the parser, the help, completion, and the reference. */
export interface CommandSpec {
  /** One or two words: `request pod`. */
  readonly name: string;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** For `--help` and the reference. */
  readonly details?: string;
  readonly args?: readonly ArgumentSpec[];
  /** The words after `--`: `COMMAND`. Absent if the command accepts none. */
  readonly rest?: string;
  /** Besides the common ones. */
  readonly flags?: readonly FlagSpec[];
  /** Without the program: `request pod payments-shell --for 30m`. */
  readonly examples?: readonly string[];
}

/** `audit verify` has its own; `exec` and `request --exec` return that of their command. */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  timedOut: 4,
  ended: 5,
  interrupted: 130,
} as const;
