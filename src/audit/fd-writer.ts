import { closeSync, constants, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '../kit/clock.ts';

/** A file (mode 0600, appended to) or standard output. */
export type Destination = { readonly path: string } | { readonly fd: 1 };

/** The destination that `--audit-log` names; `-` is standard output. */
export function destinationOf(auditLog: string): Destination {
  return auditLog === '-' ? { fd: 1 } : { path: auditLog };
}

/** For messages. */
export const nameOf = (destination: Destination): string =>
  'path' in destination ? destination.path : 'standard output';

/** write(2) from `offset`: returns the bytes written. @throws its error. */
export type WriteSync = (fd: number, bytes: Uint8Array, offset: number) => number;

interface FdWriterOptions {
  readonly clock: Clock;
  /** Lets tests inject disk errors. */
  readonly writeSync?: WriteSync;
}

/** How long a full pipe blocks the process; a blocking descriptor may block it for longer. */
export const stallMs = 50;
const NEWLINE = 0x0a;
const CLOSED = -1;

/**
 * Appends whole lines, synchronously: once `writeLine` returns, the kernel has the line. A killed
 * process cannot lose it; a crash of the node can. If the reader of a pipe stops, the first write
 * blocks the process for `stallMs`; later ones fail at once, until one succeeds again.
 */
export class FdWriter {
  readonly #destination: Destination;
  readonly #clock: Clock;
  readonly #write: WriteSync;
  #fd: number;
  #failing = false;
  /** The file ends within a line: the next write begins with a newline, so that only it is lost. */
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
   * If only the newline fails, the next write adds it.
   * @throws the error of write(2); `EAGAIN` if a pipe stays full for `stallMs`, or is still full.
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
        // The line is complete, so this is not a failure.
        if (offset === bytes.length - 1) {
          this.#torn = true;
          return;
        }
        // Part of the line was written, unless it was only the leading newline.
        if (offset > 0) this.#torn = bytes[offset - 1] !== NEWLINE;
        throw error;
      }
    }
    this.#failing = false;
    this.#torn = false;
  }

  /** After a rotation. If it fails, the old one stays in use. @throws the error of open(2). */
  reopen(): void {
    const previousFd = this.#fd;
    this.#fd = open(this.#destination);
    this.#torn = endsTorn(this.#destination) ?? this.#torn;
    if (previousFd !== 1) closeSync(previousFd);
  }

  /** Later writes fail, and reach no other file that gets the same descriptor. */
  close(): void {
    if (this.#fd !== 1) closeSync(this.#fd);
    this.#fd = CLOSED;
  }
}

/**
 * Non-blocking: a full pipe, or a FIFO without a reader, would block the process for good. Standard
 * output is opened again, because other processes share its open file description.
 */
function open(destination: Destination): number {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
  if ('path' in destination) return openSync(destination.path, flags | constants.O_CREAT, 0o600);
  try {
    return openSync('/dev/stdout', flags);
  } catch {
    // A socket, or a pipe of another user. If it is blocking, `stallMs` has no effect.
    return destination.fd;
  }
}

/** Whether the last line is incomplete; undefined if that cannot be known, as of a pipe. */
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

/** The reader of a full pipe does not read. */
export const isPipeFull = (error: unknown): boolean => codeOf(error) === 'EAGAIN';

/** The disk or a quota is full. */
export const isDiskFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(codeOf(error));

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '');

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the event loop without using the processor. */
function pauseOneMillisecond(): void {
  Atomics.wait(sleeper, 0, 0, 1);
}
