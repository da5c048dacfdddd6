import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import pkg from '../../../package.json' with { type: 'json' };
import { readCast } from '../cast.ts';
import { inNamespace, serverNow } from '../cluster-connection.ts';
import { checkName, lostView, openLog } from '../commands/sessions.ts';
import { Problem } from '../problem.ts';
import { type Call, type Handler, nameIn, Refusal } from './call.ts';
import type { JournalFolder } from './journal.ts';
import { live } from './live.ts';
import { requestPage } from './request-page.ts';
import { type RunOptions, readRunCall, runCommand } from './runs.ts';
import { type Failure, paths, type RunCall, type RunResult, type Start } from './wire.ts';

interface HandlerOptions extends RunOptions, Pick<Start, 'namespace' | 'mayListAll'> {
  readonly journal: JournalFolder;
}

const MAX_RUN_BYTES = 64 * 1024;
const MAX_RECORDING_BYTES = 1024 ** 3;

/** What the page can call. */
export function handlersOf(options: HandlerOptions): Readonly<Record<string, Handler>> {
  const { clock, journal } = options;
  return {
    [paths.start]: async (call) => call.json(await startOf(options)),
    [paths.run]: async (call) =>
      call.json(await runCommand(readRunCall(await call.read(MAX_RUN_BYTES)), options, call.signal)),
    [paths.live]: (call) => live(call, clock),
    [paths.request]: async (call) => call.json(await requestPage(call, clock)),
    [paths.cast]: cast,
    [paths.journal]: (call) => journal.answer(call),
    [paths.verdict]: (call) => verdict(call, (run, flags) => runCommand(run, options, call.signal, flags)),
    [paths.awake]: (call) => call.json({}),
  };
}

async function startOf({ connection, namespace, mayListAll, clock }: HandlerOptions): Promise<Start> {
  const { username: user, groups } = await connection.whoAmI();
  const nowMs = serverNow(connection, clock);
  return { user, groups, namespace, mayListAll, server: connection.server, version: pkg.version, nowMs };
}

/**
 * The asciicast of an open session, or of a recording, as it arrives. What goes wrong later is its
 * last line, a `Failure`: the lines before it can be shown.
 */
export async function cast({ query, connection, signal, write, line }: Call): Promise<void> {
  const from = query.get('from');
  const [namespace = '', name = ''] = ['namespace', 'name'].map((field) => nameIn(query, field));
  if (from !== 'sessions' && from !== 'recordings') throw new Refusal(400, 'from is neither sessions nor recordings');
  checkName(name);
  const own = inNamespace(connection, namespace);
  const chunks = await openLog(own, from, name, signal);
  let hasBegun = false;
  try {
    for await (const { line: text } of readCast(chunks)) {
      await write(Buffer.from(`${text}\n`));
      hasBegun = true;
    }
  } catch (error) {
    const problem = from === 'sessions' ? lostView(error, own, name) : error;
    if (!hasBegun || !(problem instanceof Problem)) throw problem;
    await line({ message: problem.message } satisfies Failure);
  }
}

/** Downloads a recording, and runs `audit verify` about it and the journal. */
export async function verdict(
  { query, connection, signal, json }: Call,
  run: (call: RunCall, more: readonly string[]) => Promise<RunResult>,
  maxBytes = MAX_RECORDING_BYTES,
): Promise<void> {
  const [namespace = '', name = ''] = ['namespace', 'name'].map((field) => nameIn(query, field));
  checkName(name);
  const chunks = await openLog(inNamespace(connection, namespace), 'recordings', name, signal);
  const folder = await mkdtemp(join(tmpdir(), 'drawbridge-recording-'));
  try {
    // As the gateway's folder of recordings.
    await mkdir(join(folder, namespace));
    const file = createWriteStream(join(folder, namespace, `${name}.cast`), { flags: 'wx', mode: 0o600 });
    await pipeline(bounded(chunks, maxBytes), file, { signal });
    await json(await run({ command: 'audit verify' }, [`--recordings=${folder}`, `--session=${name}`]));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncIterable<Uint8Array> {
  const problem = 'the recording is larger than 1 GiB; verify it in a terminal, from the folder of the gateway';
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Refusal(413, problem);
    yield chunk;
  }
}
