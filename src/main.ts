import pkg from '../package.json' with { type: 'json' };
import { auditCommand } from './cli/audit.ts';
import { revokeAll } from './cli/revoke-all.ts';
import { type Config, kubeconfigPaths, readConfig } from './config.ts';
import { UsageError, usage } from './flags.ts';
import { stayAlive, systemClock } from './kit/clock.ts';
import { CodedError, describe } from './kit/errors.ts';
import { ambientCredentials } from './kube/kubeconfig.ts';
import { openCluster } from './kube/open-cluster.ts';
import { serve } from './serve.ts';

/** Exit codes: 0 ended as told, 1 failed, 2 cannot start as asked (a flag, a file). */
const FAILED = 1;
const CANNOT_START = 2;

/** What a person can put right by changing a flag or a file. */
const setupCodes = new Set([
  'KubeconfigMissing',
  'KubeconfigInvalid',
  'KubeconfigContextNotFound',
  'BadCertificate',
  'AuditUnavailable',
  'PortUnavailable',
]);

const commands: ReadonlyMap<string, Command> = new Map([
  ['serve', serve],
  ['revoke-all', revokeAllOfCluster],
]);

async function revokeAllOfCluster({ kubeconfig, timeoutMs }: Config, signal: AbortSignal): Promise<void> {
  const cluster = openCluster(await ambientCredentials(kubeconfig), { clock: systemClock });
  const letGo = stayAlive();
  try {
    const options = { client: cluster.client, clock: systemClock, timeoutMs, signal };
    await revokeAll({ ...options, say: (line) => say(`${line}\n`) });
  } finally {
    letGo();
    await cluster.close();
  }
}

async function main(args: readonly string[]): Promise<number> {
  const [command, ...flags] = args;
  if (command === 'audit') return audit(flags);
  if (args.includes('--help') || command === 'help') return say(usage());
  if (args.includes('--version') || command === 'version') return say(`drawbridge ${pkg.version}\n`);
  try {
    const work = commands.get(command ?? '');
    if (!work) {
      const known = [...commands.keys(), 'audit'].map((name) => `drawbridge ${name}`).join(' and ');
      throw new UsageError(`unknown command "${command ?? ''}"; there is ${known} (see drawbridge --help)`);
    }
    await untilStopped(work, readConfig(flags));
    return 0;
  } catch (error) {
    process.stderr.write(`drawbridge: ${describe(error)}\n`);
    const setup = error instanceof UsageError || (error instanceof CodedError && setupCodes.has(error.code));
    return setup ? CANNOT_START : FAILED;
  }
}

type Command = (config: Config, signal: AbortSignal) => Promise<void>;

/** Works until it is done or told to stop, by SIGTERM or SIGINT; a second signal ends the process at once. */
async function untilStopped(work: Command, config: Config): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stop.abort(new Error(`received ${signal}`));
      process.once(signal, () => process.exit(FAILED));
    });
  }
  await work(config, stop.signal);
}

function audit(args: readonly string[]): Promise<number> {
  const paths = kubeconfigPaths();
  const letGo = stayAlive();
  return auditCommand(args, {
    stdin: process.stdin,
    print: say,
    complain: (text) => void process.stderr.write(text),
    ...(paths ? { kubeconfigPaths: paths } : {}),
  }).finally(letGo);
}

function say(text: string): number {
  process.stdout.write(text);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
// Sockets that others keep open must not keep a finished process alive.
process.exit();
