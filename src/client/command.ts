import type { Clock } from '../kit/clock.ts';
import type { Args } from './args.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { CommandSpec } from './command-spec.ts';

/** A command: its texts, its flags, and the function that runs it. */
export interface Command extends CommandSpec {
  /** Resolves to the exit code. Rejects with an error that `problemOf` describes. */
  run(context: Context): Promise<number>;
}

/** The inputs and outputs of a command. */
export interface Context {
  readonly args: Args;
  readonly io: Io;
  readonly clock: Clock;
  /** Aborts on SIGINT, which Ctrl-C sends, and on SIGTERM; but not while `io.run` runs a program, which then gets the signal instead. */
  readonly signal: AbortSignal;
  /**
   * Resolves to the connection that the common flags select; all calls share it. Rejects with a Problem if one is invalid or two conflict,
   * and with a CodedError if the kubeconfig cannot be used.
   */
  connect(): Promise<ClusterConnection>;
}

/** The terminal, the environment, and other programs. */
export interface Io {
  /**
   * Writes data to standard output: any number of lines, each with its newline. Control and invisible characters become `?`, except for
   * line ends and tabs.
   */
  print(text: string): void;
  /**
   * Writes one line, such as progress, a note, or an error, to standard error. Ends it with one newline, whether or not `line` already ends
   * with one. Control and invisible characters become `?`, also newlines within the line.
   */
  printError(line: string): void;
  /**
   * Writes `text` unchanged to standard output, and resolves once it is written. If standard output is a terminal, the caller must first
   * remove unsafe control sequences, for example with `TerminalFilter`.
   */
  show(text: string): Promise<void>;
  /**
   * Writes `text` unchanged to standard error, so that it can contain control sequences that move the cursor. The caller must first clean
   * text from objects with `printable`.
   */
  draw(text: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Whether standard input, output, and error are a terminal. */
  readonly terminal: { readonly input: boolean; readonly output: boolean; readonly error: boolean };
  /** Width of the terminal of standard output, characters; undefined if it is not a terminal, or does not report its width. */
  readonly columns: number | undefined;
  /** The same for standard error. */
  readonly errorColumns: number | undefined;
  /** $KUBECONFIG. */
  readonly kubeconfigPaths: string | undefined;
  /** How users call this program: `drawbridge` or `kubectl drawbridge`. */
  readonly program: string;
  /** Runs a program on this terminal. Resolves to its exit code. Rejects if it cannot start, with ENOENT if it is not installed. */
  run(program: string, args: readonly string[]): Promise<number>;
}

/**
 * The `Io` that `runClient` wraps to clean the printed text: its `print` and `printError` write text unchanged and add no newline. It needs
 * no `draw`, because `runClient` draws with this `printError`.
 */
export type RawIo = Omit<Io, 'draw'>;
