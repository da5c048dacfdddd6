import { parseArgs } from 'node:util';
import { quote } from '../kit/errors.ts';
import { parseGoDuration, toMilliseconds } from '../kit/go-duration.ts';
import { shellWord } from '../kit/shell-word.ts';
import { type ArgumentSpec, type CommandSpec, exits, type FlagSpec } from './command-spec.ts';
import { commonFlags } from './common-flags.ts';
import { nearest } from './nearest.ts';
import { Problem } from './problem.ts';

/** What the user gave to a command. */
export interface Args {
  readonly positionals: readonly string[];
  readonly rest: readonly string[];
  /** The last value of the flag. */
  text(flag: string): string | undefined;
  texts(flag: string): readonly string[];
  /** The others, as the user gave them, quoted for a shell. */
  without(flags: readonly string[]): string[];
  /** For a flag without a value; false for `=false`. */
  has(flag: string): boolean;
  /** A Go duration in milliseconds. @throws Problem if it is none, or not above zero. */
  durationMs(flag: string): number | undefined;
}

export interface CommandLine<C extends CommandSpec> {
  readonly command: C;
  readonly args: Args;
}

/** A word, a flag with its value, or, as `rest`, a word after `--`. */
interface Token {
  readonly kind: 'word' | 'flag' | 'rest';
  readonly text: string;
  readonly flag?: FlagSpec | undefined;
  readonly value?: string | undefined;
}

/** The words that are neither flags nor values. Flags may precede the command. */
export function wordsIn(argv: readonly string[], commands: readonly CommandSpec[]): string[] {
  return tokensOf(argv, allFlags(commands))
    .filter(({ kind }) => kind === 'word')
    .map(({ text }) => text);
}

/** The command with the longest matching name. */
export const commandOf = <C extends CommandSpec>(words: readonly string[], commands: readonly C[]): C | undefined =>
  commands
    .filter(({ name }) => name.split(' ').every((part, index) => words[index] === part))
    .sort((a, b) => b.name.length - a.name.length)[0];

/** A flag that several commands have occurs several times. */
export const allFlags = (commands: readonly CommandSpec[]): FlagSpec[] => [
  ...commonFlags,
  ...commands.flatMap(({ flags = [] }) => flags),
];

/** @throws Problem with exit code 2; for an unknown command or flag, it names the nearest one. */
export function readCommandLine<C extends CommandSpec>(
  argv: readonly string[],
  commands: readonly C[],
): CommandLine<C> {
  const words = wordsIn(argv, commands);
  const command = commandOf(words, commands);
  if (!command) throw unknownCommand(words, commands);
  const flags = [...commonFlags, ...(command.flags ?? [])];
  const tokens = tokensOf(argv, flags);
  const given = new Map<string, string[]>();
  for (const { kind, text, flag, value } of tokens) {
    if (kind !== 'flag') continue;
    if (!flag) throw unknownFlag(text, command, flags);
    given.set(flag.name, [...(given.get(flag.name) ?? []), givenValue(flag, value)]);
  }
  const positionals = tokens.filter(({ kind }) => kind === 'word').map(({ text }) => text);
  const args: Args = {
    positionals: positionals.slice(command.name.split(' ').length),
    rest: tokens.filter(({ kind }) => kind === 'rest').map(({ text }) => text),
    text: (flag) => given.get(flag)?.at(-1),
    texts: (flag) => given.get(flag) ?? [],
    without: (flags) =>
      [...given]
        .filter(([flag]) => !flags.includes(flag))
        .flatMap(([flag, values]) => values.map((value) => shellWord(`--${flag}=${value}`))),
    has: (flag) => given.get(flag)?.at(-1) === 'true',
    durationMs: (flag) => durationOf(flag, given.get(flag)?.at(-1)),
  };
  if (!args.has('help')) checkArguments(command, args);
  return { command, args };
}

function tokensOf(argv: readonly string[], flags: readonly FlagSpec[]): Token[] {
  const options = Object.fromEntries(
    flags.map(({ name, short, value }) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        multiple: true,
        ...(short ? { short } : {}),
      },
    ]),
  );
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true });
  const end = tokens.find(({ kind }) => kind === 'option-terminator')?.index ?? Number.POSITIVE_INFINITY;
  return tokens.flatMap((token): Token[] => {
    if (token.kind === 'positional') return [{ kind: token.index > end ? 'rest' : 'word', text: token.value }];
    if (token.kind !== 'option') return [];
    const flag = flags.find(({ name }) => name === token.name);
    // -o=wide is -o wide, as for kubectl.
    const value = token.inlineValue && token.rawName.length === 2 ? token.value?.replace(/^=/, '') : token.value;
    return [{ kind: 'flag', text: token.rawName, flag, value }];
  });
}

function givenValue(flag: FlagSpec, value: string | undefined): string {
  if (flag.value === undefined) {
    if (value === undefined || value === 'true' || value === 'false') return value ?? 'true';
    throw usageProblem(`--${flag.name} takes no value; omit ${quote(value)}`);
  }
  if (value === undefined) throw usageProblem(`--${flag.name} needs a value: --${flag.name} ${flag.value}`);
  return value;
}

function durationOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const parsed = parseGoDuration(text);
  if ('error' in parsed) throw usageProblem(`--${flag}: ${parsed.error}`);
  if (parsed.ns <= 0n) throw usageProblem(`--${flag} is ${quote(text)}; it must be above zero, such as 30m`);
  return toMilliseconds(parsed.ns);
}

function checkArguments({ name, args: specs = [], rest }: CommandSpec, { positionals, rest: given }: Args): void {
  const missing = specs[positionals.length];
  if (missing && !missing.optional)
    throw usageProblem(`${missing.name} is missing: ${name} ${specs.map(argumentText).join(' ')}`, name);
  const extra = specs.at(-1)?.repeated ? undefined : positionals[specs.length];
  if (extra !== undefined) throw usageProblem(`${name}: unexpected argument ${quote(extra)}`, name);
  if (given.length > 0 && rest === undefined) throw usageProblem(`${name} takes nothing after --`, name);
}

/** As usage shows it: `TEMPLATE`, `[NAME]`, `FILE...`. */
export function argumentText({ name, optional, repeated }: ArgumentSpec): string {
  const text = `${name}${repeated ? '...' : ''}`;
  return optional ? `[${text}]` : text;
}

function unknownCommand(words: readonly string[], commands: readonly CommandSpec[]): Problem {
  const names = commands.map(({ name }) => name);
  const [first = ''] = words;
  if (first === '') return usageProblem('no command is given; see --help for all commands');
  const group = names.filter((name) => name.startsWith(`${first} `));
  if (group.length > 0) {
    const found = words[1] === undefined ? 'the subcommand is missing' : `unknown subcommand ${quote(words[1])}`;
    return usageProblem(`${first}: ${found}; available: ${group.join(', ')}`);
  }
  return usageProblem(
    `unknown command ${quote(first)}${suggestion(first, [...new Set(names.map((name) => name.split(' ')[0] ?? ''))])}`,
  );
}

function unknownFlag(text: string, { name }: CommandSpec, flags: readonly FlagSpec[]): Problem {
  const names = flags.map((flag) => flag.name);
  const found = nearest(text.replace(/^-+/, ''), names);
  const message = `${name}: unknown flag ${quote(text)}`;
  return found === undefined ? usageProblem(message, name) : usageProblem(`${message}; did you mean --${found}?`);
}

const suggestion = (text: string, names: readonly string[]): string => {
  const found = nearest(text, names);
  return found === undefined ? '; see --help for all commands' : `; did you mean ${found}?`;
};

/** With `command`, the printed line recommends its help. */
export const usageProblem = (message: string, command?: string): Problem => new Problem(exits.usage, message, command);
