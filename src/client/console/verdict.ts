import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { inNamespace } from '../cluster-connection.ts';
import { checkName, openLog } from '../commands/sessions.ts';
import { type Call, nameIn, Refusal } from './call.ts';
import type { RunCall, RunResult } from './wire.ts';

/** Bytes of a recording. */
const MAX_RECORDING = 1024 ** 3;

/**
 * Downloads the recording of a session, and runs `audit verify` about it and the journal.
 * `flags`: those that the page cannot give.
 */
export async function verdict(
  { query, connection, signal, json }: Pick<Call, 'query' | 'connection' | 'signal' | 'json'>,
  run: (call: RunCall, flags: readonly string[]) => Promise<RunResult>,
  maxBytes = MAX_RECORDING,
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
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new Refusal(
        413,
        'the recording is larger than 1 GiB; verify it in a terminal, from the folder of the gateway',
      );
    yield chunk;
  }
}
