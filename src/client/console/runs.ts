import { basename } from 'node:path';
import { isObjectName } from '../../access/policy/names.ts';
import type { Clock } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { printable } from '../../kit/printable.ts';
import { parseJson } from '../../kit/safe-json.ts';
import { shellWord } from '../../kit/shell-word.ts';
import { readCommandLine } from '../args.ts';
import { parsed } from '../cast.ts';
import { type ClusterConnection, openConnection } from '../cluster-connection.ts';
import type { Command, Io } from '../command.ts';
import { exits } from '../command-spec.ts';
import { approvers } from '../commands/approvers.ts';
import { auditReport, auditVerify } from '../commands/audit.ts';
import { approve, deny } from '../commands/decide.ts';
import { doctor } from '../commands/doctor.ts';
import { explain } from '../commands/explain.ts';
import { bindingStatus, inventoryStatus, inventoryWhy } from '../commands/inventory.ts';
import { claim, extend } from '../commands/one-request.ts';
import { requestExec, requestPod } from '../commands/request.ts';
import { revoke } from '../commands/revoke.ts';
import { sessionsKill } from '../commands/sessions.ts';
import { templates } from '../commands/templates.ts';
import { who } from '../commands/who.ts';
import { Problem, problemOf } from '../problem.ts';
import { Refusal } from './call.ts';
import type { JournalFolder } from './journal.ts';
import type { RunCall, RunResult } from './wire.ts';

interface Runnable {
  readonly command: Command;
  /** Those that the page may give. None of them reads a file, waits, or opens a program. */
  readonly flags?: readonly string[];
  /** Always given. */
  readonly fixed?: readonly string[];
  /** What an absent namespace means: all, that of these, or by default what the command then does. */
  readonly scope?: 'all' | 'context' | 'heads';
  /** How it gets the files of the journal. The page then gives no words. */
  readonly files?: 'flags' | 'words';
}

const asked = ['for', 'reason', 'at', 'emergency'];
const noWait = ['--no-wait'];

const runnables: Readonly<Record<string, Runnable>> = {
  templates: { command: templates, scope: 'all' },
  explain: { command: explain, flags: [...asked, 'pod'], scope: 'context' },
  approvers: { command: approvers, scope: 'context' },
  'request pod': { command: requestPod, flags: asked, fixed: noWait, scope: 'context' },
  'request exec': { command: requestExec, flags: [...asked, 'pod'], fixed: noWait, scope: 'context' },
  claim: { command: claim, fixed: noWait, scope: 'context' },
  extend: { command: extend, flags: ['by', 'reason'], fixed: noWait, scope: 'context' },
  revoke: { command: revoke, flags: ['reason'], scope: 'context' },
  approve: { command: approve, flags: ['max', 'template-version', 'reason', 'about', 'uid'], scope: 'context' },
  deny: { command: deny, flags: ['reason', 'about', 'uid'], scope: 'context' },
  'sessions kill': { command: sessionsKill, scope: 'context' },
  who: { command: who, flags: ['since'], scope: 'all', files: 'flags' },
  'audit report': { command: auditReport, flags: ['since'], files: 'words' },
  'audit verify': { command: auditVerify, fixed: ['--partial'], scope: 'heads', files: 'words' },
  'binding status': { command: bindingStatus },
  'inventory status': { command: inventoryStatus, scope: 'all' },
  'inventory why': { command: inventoryWhy, scope: 'context' },
  doctor: { command: doctor },
};

function runnableOf(name: unknown): Runnable {
  const found = typeof name === 'string' && Object.hasOwn(runnables, name) ? runnables[name] : undefined;
  if (found) return found;
  throw new Refusal(400, 'the console does not run this command');
}

export interface RunOptions {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  /** Of the console's own command line, besides those of the connection. */
  readonly flags: readonly string[];
  readonly journal: Pick<JournalFolder, 'paths' | 'namespace' | 'heads'>;
}

const MAX_OUTPUT = 16 * 1024 * 1024;

/** From the body of a call. @throws Refusal 400 */
export function readRunCall(body: Buffer): RunCall {
  let value: unknown;
  try {
    value = parseJson(body);
  } catch {
    throw new Refusal(400, 'the body is not JSON');
  }
  const fields = ['command', 'namespace', 'args', 'flags'].map((field) => own(value, field));
  const [command, namespace, args = [], flags = {}] = fields;
  runnableOf(command);
  if (namespace !== undefined && !isObjectName(namespace)) throw new Refusal(400, 'namespace is not a name');
  if (!Array.isArray(args) || !args.every(isWord))
    throw new Refusal(400, 'args has a word that the console does not pass on');
  if (!isRecord(flags)) throw new Refusal(400, 'flags is not an object');
  // `commandLine` checks each flag.
  const call = { command: String(command), args, flags: flags as Record<string, string> };
  return namespace === undefined ? call : { ...call, namespace };
}

/** A name, perhaps with a type. One with a dash would be a flag. */
const isWord = (word: unknown): word is string =>
  typeof word === 'string' && /^((pod|exec)\/)?[a-z0-9][a-z0-9.-]*$/.test(word);

/** The command line of a call: words of the command, then flags. @throws Refusal 400 */
export function commandLine(
  { command: name, args = [], flags = {}, namespace }: RunCall,
  { connection, journal }: Pick<RunOptions, 'journal'> & { readonly connection: Pick<ClusterConnection, 'namespace'> },
): readonly string[] {
  const { command, flags: allowed = [], fixed = [], scope, files } = runnableOf(name);
  if (files !== undefined && args.length > 0) throw new Refusal(400, `${name} takes no words`);
  if (files === 'words' && journal.paths.length === 0)
    throw new Refusal(409, 'the console has no journal yet; read the logs of the server, or add files');
  const given = Object.entries(flags).map(([flag, value]) => {
    const spec = command.flags?.find((one) => one.name === flag);
    if (!spec || !allowed.includes(flag)) throw new Refusal(400, `the console does not pass on --${flag}`);
    if (spec.value === undefined ? value !== true : typeof value !== 'string')
      throw new Refusal(400, `--${flag} has a wrong value`);
    return value === true ? `--${flag}` : `--${flag}=${value}`;
  });
  const byScope = { context: connection.namespace, heads: journal.namespace, all: undefined };
  const where = namespace ?? (scope && byScope[scope]);
  return [
    ...name.split(' '),
    ...args,
    ...(files === 'words' ? journal.paths : []),
    ...given,
    ...fixed,
    ...(scope === 'heads' ? journal.heads.map((path) => `--heads=${path}`) : []),
    ...(files === 'flags' ? journal.paths.map((path) => `--journal=${path}`) : []),
    ...(where === undefined ? [] : [`--namespace=${where}`]),
    ...(where === undefined && scope === 'all' ? ['-A'] : []),
  ];
}

/** Resolves also if the command fails. `more`: flags that the page cannot give. */
export async function runCommand(
  call: RunCall,
  options: RunOptions,
  signal: AbortSignal,
  more: readonly string[] = [],
): Promise<RunResult> {
  const { connection, clock, journal } = options;
  const { program, kubectlFlags, credentials } = connection;
  const kubeconfigPaths = connection.kubeconfig.paths;
  const words = [...commandLine(call, options), ...more];
  const { command } = runnableOf(call.command);
  const messages: string[] = [];
  let output = '';
  const print = (text: string): void => {
    if (output.length + text.length > MAX_OUTPUT)
      throw new Problem(exits.failed, 'the output is larger than 16 MiB; choose one namespace, or use a terminal');
    output += text;
  };
  const printError = (text: string): void => {
    const line = printable(text.trimEnd()).replace(/^drawbridge audit: /, '');
    messages.push(line.startsWith(`${program}: `) ? line.slice(program.length + 2) : line);
  };
  const io: Io = {
    print,
    show: async (text) => print(text),
    printError,
    draw: () => undefined,
    stdin: (async function* () {})(),
    terminal: { input: false, output: false, error: false },
    columns: undefined,
    errorColumns: undefined,
    kubeconfigPaths,
    program,
    run: () => Promise.reject(new Error('the console starts no programs')),
  };
  let opened: Promise<ClusterConnection> | undefined;
  const close = async (): Promise<void> => opened?.then(({ cluster }) => cluster.close()).catch(() => undefined);
  // Most commands leave it to the end of the process to end their calls.
  signal.addEventListener('abort', close);
  let exitCode: number;
  try {
    const { args } = readCommandLine([...words, '--output=json', ...kubectlFlags, ...options.flags], [command]);
    const note = (text: string): void => printError(`note: ${text}`);
    const connect = (): Promise<ClusterConnection> => {
      opened ??= openConnection({ args, clock, kubeconfigPaths, program, note, credentials });
      return opened;
    };
    exitCode = await command.run({ args, io, clock, signal, connect });
  } catch (error) {
    const problem = problemOf(error);
    printError(problem.message);
    exitCode = signal.aborted ? exits.interrupted : problem.exitCode;
  } finally {
    signal.removeEventListener('abort', close);
    await close();
  }
  // As people type it: the files of the journal have only their names elsewhere.
  const shown = words.flatMap((word) => {
    if (/^--(heads|recordings)=/.test(word)) return [];
    if (word.startsWith('--namespace=')) return ['-n', word.slice('--namespace='.length)];
    return journal.paths.reduce((text, path) => text.replace(path, basename(path)), word);
  });
  const line = [program, ...[...shown, ...kubectlFlags].map(shellWord)].join(' ');
  return { exitCode, output: parsed(output) ?? output, messages, line };
}
