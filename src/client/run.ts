import { systemClock } from '../kit/clock.ts';
import { printable, printableLines } from '../kit/printable.ts';
import { contextNames } from '../kube/kubeconfig.ts';
import { type Args, allFlags, commandOf, readCommandLine, wordsIn } from './args.ts';
import { type ClusterConnection, openConnection } from './cluster-connection.ts';
import type { Command, Context, Io, RawIo } from './command.ts';
import { exits } from './command-spec.ts';
import { commands } from './commands.ts';
import { commonFlags } from './common-flags.ts';
import { complete, completionLines } from './complete.ts';
import { commandHelp, programHelp } from './help.ts';
import { problemOf } from './problem.ts';

/** Runs one command line. Resolves to its exit code; never rejects. `signal` interrupts it. */
export function runClient(argv: readonly string[], raw: RawIo, signal: AbortSignal): Promise<number> {
  return runLine(argv, cleaned(raw), signal);
}

/** A terminal would obey control characters of objects and servers. */
const cleaned = (raw: RawIo): Io => ({
  ...raw,
  print: (text) => raw.print(printableLines(text)),
  printError: (line) => raw.printError(`${printable(line.replace(/\n$/, ''))}\n`),
  draw: (text) => raw.printError(text),
});

async function runLine(argv: readonly string[], io: Io, signal: AbortSignal): Promise<number> {
  try {
    // As kubectl takes the singular and the plural.
    if (argv[0] === 'template') return await runLine(['templates', ...argv.slice(1)], io, signal);
    if (argv[0] === '__complete') return await printCompletion(argv.slice(1), io);
    const words = wordsIn(argv, commands);
    // `help codes` is a command of its own.
    const asksHelp = words[0] === 'help' && !commandOf(words, commands);
    const wantsHelp = asksHelp || argv.includes('--help') || argv.includes('-h');
    const helpWords = asksHelp ? words.slice(1) : words;
    const group = commands.filter(({ name }) => `${name} `.startsWith([...helpWords, ''].join(' ')));
    const isCommand = commands.some(({ name }) => name === helpWords.join(' '));
    if (argv.length === 0 || (wantsHelp && group.length > 1 && !isCommand)) {
      io.print(programHelp(group, io.program, group.length < commands.length));
      return argv.length === 0 ? exits.usage : exits.done;
    }
    if (asksHelp) return await runLine([...helpWords, '--help'], io, signal);
    if (words.length === 0 && argv[0] === '--version') return await runLine(['version', '--client'], io, signal);
    const { command, args } = readCommandLine(argv, commands);
    if (args.has('help')) {
      io.print(commandHelp(command, io.program));
      return exits.done;
    }
    return await command.run(contextOf(args, io, signal));
  } catch (error) {
    return report(error, io, signal);
  }
}

function contextOf(args: Args, io: Io, signal: AbortSignal): Context {
  let connection: Promise<ClusterConnection> | undefined;
  const { kubeconfigPaths, program } = io;
  const connect = (): Promise<ClusterConnection> => {
    const note = (text: string): void => io.printError(`note: ${text}\n`);
    connection ??= openConnection({ args, clock: systemClock, kubeconfigPaths, program, note });
    return connection;
  };
  return { args, io, clock: systemClock, signal, connect };
}

function report(error: unknown, io: Io, signal: AbortSignal): number {
  const problem = problemOf(error);
  if (signal.aborted && problem.exitCode !== exits.interrupted) return exits.interrupted;
  const help = problem.helpOf === undefined ? '' : `; see ${io.program} ${problem.helpOf} --help`;
  io.printError(`${io.program}: ${problem.message}${help}\n`);
  return problem.exitCode;
}

/** Of the last word, which is at the cursor. */
async function printCompletion(argv: readonly string[], io: Io): Promise<number> {
  const argsOf = (line: readonly string[]): Args => readCommandLine(['completing', ...line], [completing]).args;
  const { kubeconfigPaths: paths, program } = io;
  const completion = await complete(argv, {
    commands,
    connect: (line) =>
      openConnection({
        args: argsOf(line),
        clock: systemClock,
        kubeconfigPaths: paths,
        program,
        note: () => undefined,
      }),
    contexts: (line) => {
      const file = argsOf(line).text('kubeconfig');
      return contextNames({ ...(file === undefined ? {} : { file }), ...(paths === undefined ? {} : { paths }) });
    },
  });
  io.print(completionLines(completion));
  return exits.done;
}

/** Accepts all flags and any words, to parse the common flags of an unfinished line. */
const completing: Command = {
  name: 'completing',
  summary: '',
  args: [{ name: 'WORD', optional: true, repeated: true }],
  rest: 'WORD',
  flags: allFlags(commands).filter(({ name }) => !commonFlags.some((flag) => flag.name === name)),
  run: () => Promise.resolve(exits.done),
};
