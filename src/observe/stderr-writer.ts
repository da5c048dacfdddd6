import { writeSync } from 'node:fs';
import type { Clock } from '../kit/clock.ts';
import { describe } from '../kit/errors.ts';

const STDERR = 2;
/** A line may block the process for so long if its reader stalls; then its rest is lost. */
const MAX_BLOCK_MS = 50;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Writes a line before it returns. Never throws: drops it if the reader has stalled or left. */
export function stderrWriter(clock: Clock): (line: string) => void {
  return (line) => {
    const bytes = Buffer.from(line, 'utf8');
    const deadlineMs = clock.monotonic() + MAX_BLOCK_MS;
    let written = 0;
    while (written < bytes.length) {
      try {
        written += writeSync(STDERR, bytes, written);
      } catch (error) {
        if (!isFull(error) || clock.monotonic() > deadlineMs) return;
        Atomics.wait(sleeper, 0, 0, 1);
      }
    }
  };
}

/** Node makes pipes non-blocking, so a write to a full pipe fails with EAGAIN. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EAGAIN' || describe(error).startsWith('EAGAIN'));
}
