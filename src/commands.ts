import pkg from '../package.json' with { type: 'json' };
import { auditCommand } from './cli/audit.ts';
import { revokeAll } from './cli/revoke-all.ts';
import { type Config, kubeconfigPaths, readConfig } from './config.ts';
import { UsageError } from './flag-types.ts';
import { usage } from './flags.ts';
import { stayAlive, systemClock } from './kit/clock.ts';
import { CodedError, describe } from './kit/errors.ts';
import { ambientCredentials } from './kube/kubeconfig.ts';
import { openCluster } from './kube/open-cluster.ts';
import { serve } from './serve.ts';

/** The outputs of a command: standard output and standard error. */
export interface Terminal {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** Exit codes: 0 success, 1 failed, 2 cannot start because of a flag or a file. */
const FAILED = 1;
const CANNOT_START = 2;

/** Codes of errors that an administrator corrects by changing a flag or a file. */
const setupCodes = new Set([
  'KubeconfigMissing',
  'KubeconfigInvalid',
  'KubeconfigContextNotFound',
  'BadCertificate',
  'InvalidGrantable',
  'AuditUnavailable',
  'PortUnavailable',
]);

type Command = (config: Config, signal: AbortSignal, terminal: Terminal) => Promise<void>;

const commands: ReadonlyMap<string, Command> = new Map([
  ['serve', serve],
  ['revoke-all', revokeAllOfCluster],
]);

async function revokeAllOfCluster(
  { kubeconfig, timeoutMs }: Config,
  signal: AbortSignal,
  { print }: Terminal,
): Promise<void> {
  const cluster = openCluster(await ambientCredentials(kubeconfig), { clock: systemClock });
  const allowExit = stayAlive();
  try {
    const options = { client: cluster.client, clock: systemClock, timeoutMs, signal };
    await revokeAll({ ...options, printLine: (line) => print(`${line}\n`) });
  } finally {
    allowExit();
    await cluster.close();
  }
}

/** Runs the command in `args`. Resolves to its exit code; never rejects. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const { print, printError } = terminal;
  const [name = '', ...flags] = args;
  const succeedWith = (text: string): number => {
    print(text);
    return 0;
  };
  if (name === 'audit') return audit(flags, terminal);
  if (args.includes('--help') || name === 'help') return succeedWith(usage());
  if (args.includes('--version') || name === 'version') return succeedWith(`drawbridge ${pkg.version}\n`);
  try {
    const command = commands.get(name);
    if (!command) {
      const available = ['audit', ...commands.keys()].sort().join(', ');
      throw new UsageError(`unknown command "${name}"; available commands: ${available}; see drawbridge --help`);
    }
    await untilStopped(command, readConfig(flags), terminal);
    return 0;
  } catch (error) {
    printError(`drawbridge: ${describe(error)}\n`);
    return exitCodeOf(error);
  }
}

/** 2 if an administrator can correct the error by a flag or a file, else 1. @testing */
export function exitCodeOf(error: unknown): number {
  const isSetup = error instanceof UsageError || (error instanceof CodedError && setupCodes.has(error.code));
  return isSetup ? CANNOT_START : FAILED;
}

/** Runs the command; SIGTERM or SIGINT aborts it, and a second signal ends the process at once. */
async function untilStopped(command: Command, config: Config, terminal: Terminal): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stop.abort(new Error(`received ${signal}`));
      process.once(signal, () => process.exit(FAILED));
    });
  }
  await command(config, stop.signal, terminal);
}

function audit(args: readonly string[], { print, printError }: Terminal): Promise<number> {
  const paths = kubeconfigPaths();
  const allowExit = stayAlive();
  return auditCommand(args, {
    stdin: process.stdin,
    print,
    printError,
    ...(paths ? { kubeconfigPaths: paths } : {}),
  }).finally(allowExit);
}
