import pkg from '../../../package.json' with { type: 'json' };
import { shellWord } from '../../kit/shell-word.ts';
import type { Call, Handler } from './call.ts';
import { live, serverNow } from './live.ts';
import { type RunOptions, readRunCall, runCommand } from './runs.ts';
import { paths, type Start } from './wire.ts';

export interface HandlerOptions extends RunOptions {
  readonly namespace: string | undefined;
  readonly mayListAll: boolean;
}

const MAX_RUN_BYTES = 64 * 1024;

/** What the page can call. */
export function handlersOf(options: HandlerOptions): Readonly<Record<string, Handler>> {
  return {
    [paths.start]: async (call) => call.json(await startOf(call, options)),
    [paths.run]: async (call) =>
      call.json(await runCommand(readRunCall(await call.read(MAX_RUN_BYTES)), options, call.signal)),
    [paths.live]: (call) => live(call, options.clock),
    [paths.awake]: (call) => call.json({}),
  };
}

async function startOf({ connection }: Call, { namespace, mayListAll, clock }: HandlerOptions): Promise<Start> {
  const { username, groups } = await connection.whoAmI();
  return {
    user: username,
    groups,
    namespace,
    mayListAll,
    program: [connection.program, ...connection.kubectlFlags.map(shellWord)].join(' '),
    server: connection.server,
    version: pkg.version,
    nowMs: serverNow(connection, clock),
  };
}
