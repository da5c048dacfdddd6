import { accessSessions } from '../api/access/access-session.ts';
import { notificationProviders } from '../api/notify/notification-provider.ts';
import type { KubeObject, Resource } from '../api/object.ts';
import { namespaces } from '../api/resources.ts';
import { printable } from '../kit/printable.ts';
import { requestResource, templateResource, typeNames } from './access-requests.ts';
import { allFlags, commandOf, wordsIn } from './args.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import type { ArgumentSpec, Candidates, CommandSpec } from './command-spec.ts';
import { cannotOpen, stateOf } from './request-state.ts';

/** A word at the cursor. */
export interface Candidate {
  readonly word: string;
  readonly help: string;
}

/** With `files`, the shell offers names of files instead. */
export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly files: boolean;
}

export interface CompletionSources {
  readonly commands: readonly CommandSpec[];
  /** As the flags of `argv` select. */
  readonly connect: (argv: readonly string[]) => Promise<ClusterConnection>;
  /** In the kubeconfig that the flags of `argv` select. */
  readonly contexts: (argv: readonly string[]) => Promise<readonly string[]>;
}

/** That completion reads from a list. */
const MAX_NAMES = 500;

/** Completes the last word of `argv`, which may be empty. Never rejects. */
export async function complete(argv: readonly string[], sources: CompletionSources): Promise<Completion> {
  const current = argv.at(-1) ?? '';
  const before = argv.slice(0, -1);
  if (before.includes('--')) return { candidates: [], files: true };
  const { commands } = sources;
  const words = wordsIn(before, commands);
  const command = commandOf(words, commands);
  const flags = allFlags(command ? [command] : []);
  const previous = before.at(-1) ?? '';
  const flag = flags.find(
    ({ name, short, value }) => value !== undefined && (previous === `--${name}` || previous === `-${short}`),
  );
  // The command line cannot be parsed while the value of the flag is missing.
  if (flag) return candidatesFrom(flag.complete, before.slice(0, -1), sources, current);
  const [, flagName, value = ''] = /^--([a-z-]+)=(.*)$/s.exec(current) ?? [];
  if (flagName !== undefined) {
    const own = flags.find(({ name, value: has }) => has !== undefined && name === flagName);
    const { candidates, files } = await candidatesFrom(own?.complete, before, sources, value);
    return { candidates: candidates.map(({ word, help }) => ({ word: `--${flagName}=${word}`, help })), files };
  }
  if (current.startsWith('-')) {
    return withPrefix(
      current,
      flags.map(({ name, help }) => ({ word: `--${name}`, help })),
    );
  }
  // `templates` is a command, and so is `templates new`.
  const further = commandWords(words, commands);
  if (!command || further.length > 0) return withPrefix(current, further);
  const argument = argumentAt(command, words.length - command.name.split(' ').length);
  return candidatesFrom(argument?.complete, before, sources, current, command);
}

const argumentAt = ({ args = [] }: CommandSpec, index: number): ArgumentSpec | undefined =>
  args[index] ?? (args.at(-1)?.repeated ? args.at(-1) : undefined);

function commandWords(words: readonly string[], commands: readonly CommandSpec[]): Candidate[] {
  const found = new Map<string, string>();
  for (const { name, summary } of commands) {
    const parts = name.split(' ');
    const word = parts[words.length];
    if (word === undefined || !words.every((one, index) => parts[index] === one)) continue;
    found.set(
      word,
      found.has(word) || parts.length > words.length + 1
        ? `${parts.slice(0, words.length + 1).join(' ')} ...`
        : summary,
    );
  }
  return [...found].map(([word, help]) => ({ word, help }));
}

const withPrefix = (current: string, candidates: readonly Candidate[]): Completion => ({
  candidates: candidates.filter(({ word }) => word.startsWith(current)),
  files: false,
});

async function candidatesFrom(
  source: Candidates | undefined,
  argv: readonly string[],
  sources: CompletionSources,
  current: string,
  command?: CommandSpec,
): Promise<Completion> {
  if (source === 'files') return { candidates: [], files: true };
  const names = source === undefined ? [] : await namesFrom(source, argv, sources, command).catch(() => []);
  return withPrefix(current, names);
}

async function namesFrom(
  from: Exclude<Candidates, 'files'>,
  argv: readonly string[],
  { connect, contexts }: CompletionSources,
  command: CommandSpec | undefined,
): Promise<Candidate[]> {
  const plain = (words: readonly string[]): Candidate[] => words.map((word) => ({ word, help: '' }));
  if (from === 'contexts') return plain(await contexts(argv));
  if (typeof from !== 'string') return plain(from);
  const connection = await connect(argv);
  const inNamespace = { namespace: connection.namespace };
  if (from === 'namespaces') return plain(await namesOf(connection, namespaces, {}));
  if (from === 'sessions') return plain(await namesOf(connection, accessSessions, inNamespace));
  if (from === 'providers') return plain(await namesOf(connection, notificationProviders, inNamespace));
  const isOffered = (one: KubeObject): boolean => from !== 'unended requests' || !cannotOpen(stateOf(one).state);
  const type = typeNames.find((one) => command?.name === `request ${one}`);
  const lists = await Promise.all(
    (type ? [type] : typeNames).map(async (one) => {
      const resource = from === 'templates' ? templateResource(one) : requestResource(one);
      // The user may be allowed to list only the other kind.
      const names = await namesOf(connection, resource, inNamespace, isOffered).catch(() => []);
      return names.map((word) => ({ word, help: one }));
    }),
  );
  return lists.flat();
}

/** Of the first page. */
async function namesOf(
  { cluster }: ClusterConnection,
  resource: Resource,
  scope: { readonly namespace?: string },
  isOffered: (object: KubeObject) => boolean = () => true,
): Promise<string[]> {
  for await (const { items } of cluster.own.pages(resource, { ...scope, limit: MAX_NAMES })) {
    return items.filter(isOffered).map(({ metadata: { name } }) => name);
  }
  return [];
}

/** For the completion scripts: words, then a directive of Cobra, `:0` for names of files. */
export const completionLines = ({ candidates, files }: Completion): string =>
  [
    ...candidates.map(({ word, help }) => (help === '' ? printable(word) : `${printable(word)}\t${printable(help)}`)),
    files ? ':0' : ':4',
    '',
  ].join('\n');
