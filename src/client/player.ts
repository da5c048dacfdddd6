import { type Clock, sleep } from '../kit/clock.ts';
import { printable } from '../kit/printable.ts';
import { type CastLine, readCast } from './cast.ts';
import type { Io } from './command.ts';
import { TerminalFilter } from './terminal-filter.ts';

export interface PlayOptions {
  readonly io: Pick<Io, 'print' | 'show' | 'printError' | 'terminal' | 'columns'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Print the lines of the recording; on a terminal, without control characters. */
  readonly asLines: boolean;
  /** 2 is twice as fast as the session. Undefined: no pauses. */
  readonly speed: number | undefined;
}

/** Between two events, at speed 1. */
const MAX_PAUSE_MS = 2000;

/**
 * Shows a recording or a live view. On a terminal, drops unsafe control sequences, and finally
 * restores it. Rejects as `readCast` and `chunks` do, or with the reason of the signal.
 */
export async function play(chunks: AsyncIterable<Uint8Array>, options: PlayOptions): Promise<void> {
  const { io, clock, signal, asLines, speed } = options;
  const filter = io.terminal.output && !asLines ? new TerminalFilter() : undefined;
  const startMs = clock.monotonic();
  let [lastMs, dueMs] = [0, 0];
  try {
    for await (const line of readCast(chunks)) {
      signal.throwIfAborted();
      if ('event' in line && speed !== undefined) {
        dueMs += Math.min(Math.max(0, line.event.atMs - lastMs), MAX_PAUSE_MS) / speed;
        lastMs = line.event.atMs;
        const waitMs = startMs + dueMs - clock.monotonic();
        if (waitMs > 0) await sleep(clock, waitMs, signal);
      }
      // `print` cleans it: JSON does not escape 8-bit control characters, which a terminal obeys.
      if (asLines && io.terminal.output) io.print(`${line.line}\n`);
      else if (asLines) await io.show(`${line.line}\n`);
      else await showLine(line, io, filter);
    }
  } finally {
    if (filter) await io.show(`${filter.end()}\r\n`);
  }
}

async function showLine(line: CastLine, io: PlayOptions['io'], filter: TerminalFilter | undefined): Promise<void> {
  if ('header' in line) {
    const { width, height } = line.header;
    if (filter && io.columns !== undefined && io.columns < width) {
      io.printError(
        `note: the terminal of the session has ${width} x ${height} characters, and this terminal has fewer columns; lines may wrap, so widen this terminal\n`,
      );
    }
    return;
  }
  if (!('event' in line)) return;
  const { code, text } = line.event;
  if (code === 'o') await io.show(filter ? filter.pass(text) : text);
  else if (code === 'm' && filter) await io.show(`\r\n[drawbridge] ${printable(text)}\r\n`);
  else if (code === 'm') io.printError(`[drawbridge] ${text}\n`);
}
