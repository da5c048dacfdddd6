import type { Clock } from '../kit/clock.ts';
import type { Args } from './args.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { CommandSpec } from './command-spec.ts';

export interface Command extends CommandSpec {
  /** Resolves to the exit code. Rejects with an error that `problemOf` describes. */
  run(context: Context): Promise<number>;
}

export interface Context {
  readonly args: Args;
  readonly io: Io;
  readonly clock: Clock;
  /** Aborts on SIGINT (Ctrl-C) and SIGTERM, but `io.run` leaves them to its program. */
  readonly signal: AbortSignal;
  /**
   * As the common flags select; all calls share it. Rejects with a Problem or CodedError if those
   * or the kubeconfig are wrong.
   */
  connect(): Promise<ClusterConnection>;
}

/** The terminal, the environment, and other programs. */
export interface Io {
  /** To standard output. Control and invisible characters become `?`, except line ends and tabs. */
  print(text: string): void;
  /** One line to standard error. Control and invisible characters become `?`. */
  printError(line: string): void;
  /** Unchanged to standard output. On a terminal, first drop unsafe sequences: `TerminalFilter`. */
  show(text: string): Promise<void>;
  /** Unchanged to standard error, to move the cursor. First clean texts with `printable`. */
  draw(text: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly terminal: { readonly input: boolean; readonly output: boolean; readonly error: boolean };
  /** Of standard output, characters; undefined if unknown, or not a terminal. */
  readonly columns: number | undefined;
  /** Of standard error. */
  readonly errorColumns: number | undefined;
  /** $KUBECONFIG. */
  readonly kubeconfigPaths: string | undefined;
  /** How users call this program: `drawbridge` or `kubectl drawbridge`. */
  readonly program: string;
  /** Resolves to the exit code. Rejects if the program cannot start: ENOENT if not installed. */
  run(program: string, args: readonly string[]): Promise<number>;
}

/** Its `print` and `printError` write text unchanged; `runClient` wraps it to clean the text. */
export type RawIo = Omit<Io, 'draw'>;
