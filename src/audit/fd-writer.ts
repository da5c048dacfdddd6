import { closeSync, constants, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '../kit/clock.ts';

/** Destination of lines: a file (created with mode 0600, appended to) or standard output. */
export type Destination = { readonly path: string } | { readonly fd: 1 };

/** The destination that `--audit-log` names: standard output for `-`, else a file. */
export function destinationOf(auditLog: string): Destination {
  return auditLog === '-' ? { fd: 1 } : { path: auditLog };
}

/** The name of the destination for messages: the path of the file, or `standard output`. */
export const nameOf = (destination: Destination): string =>
  'path' in destination ? destination.path : 'standard output';

/** write(2): returns the number of bytes written from `offset`. @throws its error. */
export type WriteSync = (fd: number, bytes: Uint8Array, offset: number) => number;

interface FdWriterOptions {
  readonly clock: Clock;
  /** Replaces write(2), so that tests can inject disk errors. */
  readonly writeSync?: WriteSync;
}

/** Maximum time that a full pipe blocks the process, milliseconds. A blocking descriptor (see `open`) may block it for longer. */
export const stallMs = 50;
const NEWLINE = 0x0a;
const CLOSED = -1;

/**
 * Appends whole lines to a descriptor, synchronously: once `writeLine` returns, the kernel has the line. A killed process cannot lose it; a
 * crash of the node can. If a pipe is full because its reader stopped reading, the first write blocks the process for `stallMs`. Until a
 * write succeeds again, later writes do not wait, so the delays of an outage do not add up. If standard output is blocking and cannot be
 * opened again, a full pipe blocks the process until its reader reads.
 */
export class FdWriter {
  readonly #destination: Destination;
  readonly #clock: Clock;
  readonly #write: WriteSync;
  #fd: number;
  #failing = false;
  /** Whether the file ends within a line. The next write then begins with a newline, so that only that line is invalid JSON. */
  #torn = false;

  /** @throws the error of open(2). */
  constructor(destination: Destination, options: FdWriterOptions) {
    this.#destination = destination;
    this.#clock = options.clock;
    this.#write = options.writeSync ?? writeSync;
    this.#fd = open(destination);
    this.#torn = endsTorn(destination) ?? false;
  }

  /**
   * Writes `line` and a newline. If only the newline fails, the next write adds it.
   * @throws the error of write(2), with code `EAGAIN` if the pipe stays full for `stallMs`, or at once after a failed write.
   */
  writeLine(line: string): void {
    const bytes = Buffer.from(`${this.#torn ? '\n' : ''}${line}\n`);
    const deadline = this.#clock.monotonic() + (this.#failing ? 0 : stallMs);
    // Bounds the loop if the clock stands still.
    let pauses = 0;
    for (let offset = 0; offset < bytes.length; ) {
      try {
        offset += this.#write(this.#fd, bytes, offset);
      } catch (error) {
        if (isPipeFull(error) && pauses < stallMs && this.#clock.monotonic() < deadline) {
          pauses++;
          pauseOneMillisecond();
          continue;
        }
        this.#failing = true;
        // Only the newline is missing: the line is complete, so this is not a failure.
        if (offset === bytes.length - 1) {
          this.#torn = true;
          return;
        }
        // If no byte was written, nothing changed. If some were, the file ends within a line, unless only the leading newline was written.
        if (offset > 0) this.#torn = bytes[offset - 1] !== NEWLINE;
        throw error;
      }
    }
    this.#failing = false;
    this.#torn = false;
  }

  /** Opens the file or standard output again, after a rotation. If that fails, the old one stays in use. @throws the error of open(2). */
  reopen(): void {
    const previousFd = this.#fd;
    this.#fd = open(this.#destination);
    this.#torn = endsTorn(this.#destination) ?? this.#torn;
    if (previousFd !== 1) closeSync(previousFd);
  }

  /** Closes the file. Later writes fail instead of reaching another file that got the same descriptor. */
  close(): void {
    if (this.#fd !== 1) closeSync(this.#fd);
    this.#fd = CLOSED;
  }
}

/**
 * Opens non-blocking: a blocking write to a full pipe, or to a FIFO without a reader, would block the process indefinitely. Standard output
 * is opened again, because the flag belongs to the open file description, which other processes share.
 */
function open(destination: Destination): number {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
  if ('path' in destination) return openSync(destination.path, flags | constants.O_CREAT, 0o600);
  try {
    return openSync('/dev/stdout', flags);
  } catch {
    // For example a socket, or a pipe of another user: use the inherited descriptor. If that is blocking, `stallMs` has no effect.
    return destination.fd;
  }
}

/** Whether the file ends within a line, which a process left incomplete. Undefined for standard output, a pipe, or an unreadable file. */
function endsTorn(destination: Destination): boolean | undefined {
  if (!('path' in destination)) return undefined;
  try {
    const file = statSync(destination.path);
    if (!file.isFile()) return undefined;
    if (file.size === 0) return false;
    const fd = openSync(destination.path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const last = Buffer.alloc(1);
      return readSync(fd, last, 0, 1, file.size - 1) === 1 && last[0] !== NEWLINE;
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** Whether write(2) failed because the reader of a full pipe did not read. */
export const isPipeFull = (error: unknown): boolean => codeOf(error) === 'EAGAIN';

/** Whether write(2) failed because the disk or a quota is full. */
export const isDiskFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(codeOf(error));

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the event loop for 1 ms without using the processor. */
function pauseOneMillisecond(): void {
  Atomics.wait(sleeper, 0, 0, 1);
}
