import { createReadStream } from 'node:fs';
import { byteLines } from '../audit/verify/lines.ts';
import { parseTime } from '../kit/clock.ts';
import { describe, quote } from '../kit/errors.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { Io } from './command.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** Of any version. `audit verify` verifies the hash chain, this does not. */
export interface JournalLine {
  /** When the server wrote it, epoch ms. */
  readonly atMs: number;
  readonly record: object;
}

/** The text or number at a path such as `who.user`, as text; empty if there is none. */
export function textIn(record: unknown, path: string): string {
  let value = record;
  for (const field of path.split('.')) value = own(value, field);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/**
 * Audit lines since `sinceMs` (epoch ms) in the files; `-` is standard input. Rejects with a
 * Problem if one cannot be read.
 */
export async function* journalLines(
  files: readonly string[],
  io: Pick<Io, 'stdin'>,
  sinceMs: number,
): AsyncGenerator<JournalLine> {
  for (const file of files) {
    try {
      for await (const text of byteLines(file === '-' ? io.stdin : createReadStream(file))) {
        const line = parseLine(text);
        if (line && line.atMs >= sinceMs) yield line;
      }
    } catch (error) {
      throw new Problem(exits.failed, `cannot read the journal ${quote(file, 256)}: ${describe(error)}`);
    }
  }
}

function parseLine(text: string): JournalLine | undefined {
  const at = text.indexOf('{"chain":"');
  if (at < 0) return undefined;
  try {
    // `byteLines` returns latin1, one character for each byte.
    const record: unknown = JSON.parse(Buffer.from(text.slice(at), 'latin1').toString('utf8'));
    const atMs = parseTime(textIn(record, 'time'));
    return isRecord(record) && atMs !== undefined ? { atMs, record } : undefined;
  } catch {
    return undefined;
  }
}

/** What `--since` selects, as days (`90d`) or a Go duration, in epoch ms. @throws Problem */
export function sinceOf(
  args: { text(flag: string): string | undefined; durationMs(flag: string): number | undefined },
  nowMs: number,
): number {
  const text = args.text('since');
  if (text === undefined) return Number.NEGATIVE_INFINITY;
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? [];
  if (days !== undefined) return nowMs - Number(days) * 86_400_000;
  return nowMs - (args.durationMs('since') ?? 0);
}
