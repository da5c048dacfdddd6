import { parseArgs } from 'node:util';
import { type Flag, type FlagTable, flagSections, flags } from './flag-table.ts';
import { type FlagType, UsageError } from './flag-types.ts';

/** The name of a flag, without its leading dashes. */
export type FlagName = keyof typeof flags;
const flagNames = Object.keys(flags) as FlagName[];

/** The type of the flag's value. It includes undefined if the flag has no `fallback`. */
type FlagValue<Name extends FlagName> = (typeof flags)[Name] extends {
  readonly type: FlagType<infer T>;
  readonly fallback: string;
}
  ? T
  : (typeof flags)[Name] extends { readonly type: FlagType<infer T> }
    ? T | undefined
    : never;

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** Values by the flag's name in camel case: `leaderElect`. Durations are in milliseconds. */
export type FlagValues = { readonly [Name in FlagName as CamelCase<Name>]: FlagValue<Name> };

/** The flags of a section, as `--help` and docs/reference/flags.md show them. */
export const flagRows = (section: FlagTable) =>
  Object.entries(section).map(([name, { type, env, fallback, defaultInWords, help }]) => ({
    name,
    placeholder: type.placeholder,
    variable: variableOf(name, env),
    byDefault: defaultInWords ?? fallback,
    help,
  }));

function variableOf(name: string, env: Flag['env']): string | undefined {
  if (env === false) return undefined;
  return env ?? `DRAWBRIDGE_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** The text of `drawbridge --help`. */
export function usage(): string {
  const sections = Object.entries(flagSections).flatMap(([title, section]) => [
    '',
    `${title}:`,
    ...flagRows(section).flatMap(({ name, placeholder, variable, byDefault, help }) => [
      `  --${name} ${placeholder}${variable ? `  [$${variable}]` : ''}`,
      wrapped(byDefault === undefined ? help : `${help} Default: ${byDefault}.`),
    ]),
  ]);
  return [
    'Usage: drawbridge serve [flags]',
    '       drawbridge revoke-all [--kubeconfig=FILE] [--context=NAME] [--timeout=DURATION]',
    '       drawbridge audit verify [flags] FILE|- ...   verifies audit journals; see drawbridge audit --help',
    '',
    'serve runs the features in --features: it opens access to Kubernetes workloads for a limited time, binds the APIs of',
    'other clusters, calls the components of an inventory of clusters, or passes the streams of users to Pods.',
    'revoke-all deletes every request, and waits until a running server has closed all access.',
    '',
    'The environment variable in brackets also sets the flag. The flag overrides the variable.',
    ...sections,
    '',
    '  --help, --version',
    '',
  ].join('\n');
}

/** Indented lines of at most 110 characters. */
const wrapped = (help: string): string => help.replace(/(.{1,102})(?: |$)/g, '        $1\n').trimEnd();

/** Flags and environment as they were given. */
export interface Flags {
  /** The given values, else the defaults. */
  readonly values: FlagValues;
  /** The text that was given, by flag or environment; the flag wins. */
  given(name: FlagName): { readonly text: string; readonly by: 'flag' | 'environment' } | undefined;
  /** For messages: the flag with its dashes, or the variable with `$` if that gave the value. */
  origin(name: FlagName): string;
}

/** @throws UsageError for an unknown flag, a missing value, or one that is not allowed. */
export function readFlags(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Flags {
  const typed = parseFlags(args);
  const variable = (name: FlagName): string => variableOf(name, (flags[name] as Flag).env) ?? '';
  const given: Flags['given'] = (name) => {
    const flag = typed[name];
    if (flag !== undefined) return { text: flag, by: 'flag' };
    const text = env[variable(name)];
    return text === undefined ? undefined : { text, by: 'environment' };
  };
  const origin: Flags['origin'] = (name) => {
    if (given(name)?.by === 'environment') return `$${variable(name)}`;
    return name === 'v' ? '-v' : `--${name}`;
  };
  const parsed = (name: FlagName): unknown => {
    const { type, fallback }: Flag = flags[name];
    const found = given(name)?.text ?? fallback;
    return found === undefined ? undefined : type.parse(found, origin(name));
  };
  const values = Object.fromEntries(flagNames.map((name) => [camelCase(name), parsed(name)])) as FlagValues;
  return { values, given, origin };
}

const camelCase = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** As in Kubernetes, `--leader-elect` and `--dry-run` mean true, and `-v=4` means `-v 4`. */
function parseFlags(args: readonly string[]): Partial<Record<FlagName, string>> {
  const options = Object.fromEntries(
    flagNames.map((name) => [name, { type: 'string' as const, ...(name === 'v' ? { short: 'v' } : {}) }]),
  );
  const expanded = args.map((arg) =>
    arg === '--leader-elect' || arg === '--dry-run' ? `${arg}=true` : arg.replace(/^-v=/, '--v='),
  );
  try {
    return parseArgs({ args: expanded, options, strict: true, allowPositionals: false }).values as Partial<
      Record<FlagName, string>
    >;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    // Omits the hint of Node about arguments that begin with a dash.
    throw new UsageError(`${reason.replace(/\. To specify.*$/, '')}; see drawbridge --help`);
  }
}
