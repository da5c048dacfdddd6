/** What shell completion offers for a word: fixed words, names of objects, contexts of the kubeconfig, or files. */
export type Candidates =
  | readonly string[]
  | 'templates'
  | 'requests'
  | 'sessions'
  | 'namespaces'
  | 'contexts'
  | 'files';

/** One flag. The parser, the help, completion, and the reference use it. */
export interface FlagSpec {
  /** Without `--`. */
  readonly name: string;
  /** One letter. */
  readonly short?: string;
  /** The placeholder of its value; absent for a flag without a value. */
  readonly value?: string;
  /** Whether each of its values counts. Default false: the last one counts. */
  readonly repeated?: true;
  readonly help: string;
  /** What completion offers for its value. Default: nothing. */
  readonly complete?: Candidates;
}

/** One positional argument. */
export interface ArgumentSpec {
  /** As the usage line shows it: `TEMPLATE`. */
  readonly name: string;
  readonly optional?: true;
  /** Whether it takes all further arguments. Only the last argument can. */
  readonly repeated?: true;
  /** What completion offers for it. Default: nothing. */
  readonly complete?: Candidates;
}

/** One command. The parser, the help, completion, and the reference use it. */
export interface CommandSpec {
  /** One or two words: `request pod`. */
  readonly name: string;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** Further sentences for `--help` and the reference. */
  readonly details?: string;
  readonly args?: readonly ArgumentSpec[];
  /** The words after `--`, as the usage line shows them: `COMMAND`. Absent if the command accepts none. */
  readonly rest?: string;
  /** Flags of this command, besides the common ones. */
  readonly flags?: readonly FlagSpec[];
  /** Command lines without the program: `request pod payments-shell --for 30m`. */
  readonly examples?: readonly string[];
}

/** Exit codes. `audit verify` has its own. `exec` and `request --exec` return that of the command in the pod. */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  timedOut: 4,
  ended: 5,
  interrupted: 130,
} as const;
