import pkg from '../package.json' with { type: 'json' };
import { type Config, readConfig, UsageError, usage } from './config.ts';
import { CodedError, describe } from './kit/errors.ts';
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

async function main(args: readonly string[]): Promise<number> {
  const [command, ...flags] = args;
  if (args.includes('--help') || command === 'help') return say(usage());
  if (args.includes('--version') || command === 'version') return say(`drawbridge ${pkg.version}\n`);
  try {
    if (command !== 'serve')
      throw new UsageError(`unknown command "${command ?? ''}"; there is drawbridge serve (see drawbridge --help)`);
    await run(readConfig(flags));
    return 0;
  } catch (error) {
    process.stderr.write(`drawbridge: ${describe(error)}\n`);
    const setup = error instanceof UsageError || (error instanceof CodedError && setupCodes.has(error.code));
    return setup ? CANNOT_START : FAILED;
  }
}

/** Serves until SIGTERM or SIGINT; a second signal ends the process at once. */
async function run(config: Config): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      stop.abort(new Error(`received ${signal}`));
      process.once(signal, () => process.exit(FAILED));
    });
  }
  await serve(config, stop.signal);
}

function say(text: string): number {
  process.stdout.write(text);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
// Sockets that others keep open must not keep a finished process alive.
process.exit();
