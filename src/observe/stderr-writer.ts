import { writeSync } from 'node:fs';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';

const STDERR = 2;
/** How long a line may hold up the process when nobody reads the pipe; then the rest of it is lost. */
const PATIENCE_MS = 50;
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

/** Writes each line to stderr before it returns. Gives up on a line, never throws, when the reader has stalled or gone. */
export function stderrWriter(clock: Clock): (line: string) => void {
  return (line) => {
    const bytes = Buffer.from(line, 'utf8');
    const giveUpAt = clock.monotonic() + PATIENCE_MS;
    let written = 0;
    while (written < bytes.length) {
      try {
        written += writeSync(STDERR, bytes, written);
      } catch (error) {
        if (!isFull(error) || clock.monotonic() > giveUpAt) return;
        Atomics.wait(PAUSE, 0, 0, 1);
      }
    }
  };
}

/** Pipes are non-blocking once Node has touched them: a full one answers EAGAIN instead of waiting. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || describe(error).startsWith('EAGAIN'));
}
