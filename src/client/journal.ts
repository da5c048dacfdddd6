import { createReadStream } from 'node:fs';
import { byteLines } from '../audit/verify/lines.ts';
import { parseTime } from '../kit/clock.ts';
import { describe, quote } from '../kit/errors.ts';
import { isRecord, own } from '../kit/json-value.ts';
import type { Io } from './command.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** One line of an audit journal, of any version. Its hash chain is not verified; the command `audit verify` does that. */
export interface JournalLine {
  /** When the server wrote the line, epoch ms. */
  readonly atMs: number;
  readonly record: object;
}

/** The text or number at a path of fields, as text: `who.user`. Empty if there is none. */
export function textIn(record: unknown, path: string): string {
  let value = record;
  for (const field of path.split('.')) value = own(value, field);
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/**
 * The audit lines of journals since `sinceMs` (epoch ms), in the order of the files. The file `-` is standard input. Skips lines that are
 * not audit lines. Rejects with a Problem if a file cannot be read.
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

/**
 * The earliest time that the flag `--since` selects, epoch ms: `nowMs` minus the value, which is in days (`90d`) or a Go duration. Negative
 * infinity without the flag. @throws Problem for any other value.
 */
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
