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
export interface CommandOutput {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** Exit codes of `serve` and `revoke-all`: 0 success, 1 failed, 2 cannot start because of a flag or a file. */
const FAILED = 1;
const CANNOT_START = 2;

/** Codes of errors at the start that an administrator corrects by changing a flag or a file. */
const setupCodes = new Set([
  'KubeconfigMissing',
  'KubeconfigInvalid',
  'KubeconfigContextNotFound',
  'BadCertificate',
  'InvalidGrantable',
  'InvalidAddresses',
  'AuditUnavailable',
  'PortUnavailable',
]);

type Command = (config: Config, signal: AbortSignal, output: CommandOutput) => Promise<void>;

const commands: ReadonlyMap<string, Command> = new Map([
  ['serve', serve],
  ['revoke-all', revokeAllOfCluster],
]);

async function revokeAllOfCluster(
  { kubeconfig, timeout: timeoutMs }: Config,
  signal: AbortSignal,
  { print }: CommandOutput,
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

/** Runs the command in `args`. Resolves to its exit code, for `audit` that of `auditCommand`; never rejects. */
export async function run(args: readonly string[], output: CommandOutput): Promise<number> {
  const { print, printError } = output;
  const [name = '', ...flags] = args;
  const succeedWith = (text: string): number => {
    print(text);
    return 0;
  };
  if (name === 'audit') return audit(flags, output);
  if (args.includes('--help') || name === 'help') return succeedWith(usage());
  if (args.includes('--version') || name === 'version') return succeedWith(`drawbridge ${pkg.version}\n`);
  try {
    const command = commands.get(name);
    if (!command) {
      const available = ['audit', ...commands.keys()].sort().join(', ');
      throw new UsageError(`${notACommand(name)}; available commands: ${available}; see drawbridge --help`);
    }
    await command(readConfig(flags), stopSignal(), output);
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

function notACommand(name: string): string {
  if (name === '') return 'no command is given';
  return name.startsWith('-') ? `no command before "${name}"` : `unknown command "${name}"`;
}

/** A signal that the first SIGTERM or SIGINT aborts. A second one, of either kind, ends the process at once with exit code 1. @testing */
export function stopSignal(
  signals: Pick<NodeJS.EventEmitter, 'on'> = process,
  exit: (code: number) => void = (code) => process.exit(code),
): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    signals.on(signal, () => {
      if (stop.signal.aborted) exit(FAILED);
      else stop.abort(new Error(`received ${signal}`));
    });
  }
  return stop.signal;
}

function audit(args: readonly string[], { print, printError }: CommandOutput): Promise<number> {
  const paths = kubeconfigPaths();
  const allowExit = stayAlive();
  return auditCommand(args, {
    stdin: process.stdin,
    print,
    printError,
    ...(paths ? { kubeconfigPaths: paths } : {}),
  }).finally(allowExit);
}
