import pkg from '../../../package.json' with { type: 'json' };
import { serverNow } from '../cluster-connection.ts';
import type { Call, Handler } from './call.ts';
import { cast } from './cast.ts';
import type { JournalFolder } from './journal.ts';
import { live } from './live.ts';
import { requestPage } from './request-page.ts';
import { type RunOptions, readRunCall, runCommand } from './runs.ts';
import { verdict } from './verdict.ts';
import { paths, type Start } from './wire.ts';

export interface HandlerOptions extends RunOptions {
  readonly journal: JournalFolder;
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
    [paths.request]: async (call) => call.json(await requestPage(call, options.clock)),
    [paths.cast]: cast,
    [paths.journal]: (call) => options.journal.answer(call),
    [paths.verdict]: (call) => verdict(call, (run, flags) => runCommand(run, options, call.signal, flags)),
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
    server: connection.server,
    version: pkg.version,
    nowMs: serverNow(connection, clock),
  };
}
