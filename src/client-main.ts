import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { basename } from 'node:path';
import { runClient } from './client/run.ts';
import { kubeconfigPaths } from './config.ts';
import { stayAlive } from './kit/clock.ts';

const stop = new AbortController();
// The program that `run` started on this terminal. It gets Ctrl-C from the terminal, and this process waits until it ends.
let child: ChildProcess | undefined;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (child) {
      // The terminal sends Ctrl-C to both programs, but SIGTERM reaches only this one.
      if (signal !== 'SIGINT') child.kill(signal);
      return;
    }
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new Error(`received ${signal}`));
  });
}

/** Runs a program on this terminal. Resolves to its exit code as a shell reports it; rejects if it cannot start. */
function run(program: string, args: readonly string[]): Promise<number> {
  const started = spawn(program, args, { stdio: 'inherit' });
  child = started;
  return new Promise<number>((resolve, reject) => {
    started.once('error', reject);
    started.once('exit', (code, signal) => resolve(code ?? exitCodeOf(signal)));
  }).finally(() => {
    child = undefined;
  });
}

/** The exit code that a shell reports for a program that the signal ended. */
const exitCodeOf = (signal: NodeJS.Signals | null): number => 128 + (signal === null ? 0 : constants.signals[signal]);

/** How users call this program, and its arguments. kubectl calls `kubectl_complete-drawbridge` to complete a command line of the plugin. */
function commandLine(): { readonly program: string; readonly argv: readonly string[] } {
  // In a single executable, only argv0 has the name of the link by which it was called.
  const names = [process.argv0, process.argv[1] ?? ''].map((path) => basename(path));
  const name = names.find((one) => /^kubectl[-_]/.test(one)) ?? '';
  const argv = process.argv.slice(2);
  if (name.startsWith('kubectl_complete-')) return { program: 'kubectl drawbridge', argv: ['__complete', ...argv] };
  return { program: name.startsWith('kubectl-') ? 'kubectl drawbridge' : 'drawbridge', argv };
}

// No await at the top level, because a single executable is CommonJS.
async function main(): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // If the reader, such as `head`, has closed the pipe, the program ends without a message, with the exit code of SIGPIPE.
    if (error.code === 'EPIPE') process.exit(128 + constants.signals.SIGPIPE);
    process.stderr.write(`drawbridge: cannot write the output: ${error.message}; the output is incomplete\n`, () =>
      process.exit(1),
    );
  });
  const allowExit = stayAlive();
  const { program, argv } = commandLine();
  const io = {
    print: (text: string) => void process.stdout.write(text),
    show: (text: string) => new Promise<void>((resolve) => process.stdout.write(text, () => resolve())),
    printError: (text: string) => void process.stderr.write(text),
    stdin: process.stdin,
    terminal: { input: process.stdin.isTTY, output: process.stdout.isTTY, error: process.stderr.isTTY },
    // A terminal of unknown size reports 0 columns.
    columns: process.stdout.columns || undefined,
    errorColumns: process.stderr.columns || undefined,
    kubeconfigPaths: kubeconfigPaths(),
    program,
    run,
  };
  const exitCode = await runClient(argv, io, stop.signal);
  allowExit();
  // Exit explicitly, because open connections keep the process alive, but only once the output is written: a pipe may take it later.
  // If the output failed, the listener above ends the process.
  process.stdout.write('', (error) => {
    if (!error) process.stderr.write('', () => process.exit(exitCode));
  });
}

void main();
