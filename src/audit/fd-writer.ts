import { closeSync, constants, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '../kit/clock.ts';

/** Where lines go: a file (appended to, created with mode 0600) or standard output. */
export type Destination = { readonly path: string } | { readonly fd: 1 };

/** `-` is standard output, anything else a file. */
export function destinationOf(auditLog: string): Destination {
  return auditLog === '-' ? { fd: 1 } : { path: auditLog };
}

export type WriteSync = (fd: number, bytes: Uint8Array, offset: number) => number;

interface FdWriterOptions {
  readonly clock: Clock;
  /** How long a full pipe may hold up the process, milliseconds. Default 50. */
  readonly stallMs?: number;
  /** The write(2) underneath; tests put disk errors here. */
  readonly writeSync?: WriteSync;
}

const DEFAULT_STALL_MS = 50;
const NEWLINE = 0x0a;
const CLOSED = -1;

/**
 * Appends whole lines to a descriptor, synchronously: once `writeLine` returns, the kernel has the bytes and a killed process
 * cannot lose them. A reader that stalls holds the process up once, for `stallMs`; until a write gets through again every
 * further line gets one try only, so an outage never adds up.
 */
export class FdWriter {
  readonly #destination: Destination;
  readonly #clock: Clock;
  readonly #stallMs: number;
  readonly #write: WriteSync;
  #fd: number;
  #stalled = false;
  /** The last line broke off in the middle: the next one starts on a new line, and the stump stays recognisable as no JSON. */
  #torn = false;

  /** @throws the error of open(2). */
  constructor(destination: Destination, options: FdWriterOptions) {
    this.#destination = destination;
    this.#clock = options.clock;
    this.#stallMs = options.stallMs ?? DEFAULT_STALL_MS;
    this.#write = options.writeSync ?? writeSync;
    this.#fd = open(destination);
    this.#torn = endsTorn(destination);
  }

  /** Writes `line` and a newline. @throws the error of write(2), with code `EAGAIN` when the reader stalled for too long. */
  writeLine(line: string): void {
    const bytes = Buffer.from(`${this.#torn ? '\n' : ''}${line}\n`);
    const deadline = this.#clock.monotonic() + (this.#stalled ? 0 : this.#stallMs);
    let pauses = 0;
    for (let offset = 0; offset < bytes.length; ) {
      try {
        offset += this.#write(this.#fd, bytes, offset);
      } catch (error) {
        if (isAgain(error) && pauses < this.#stallMs && this.#clock.monotonic() < deadline) {
          pauses++;
          pauseOneMillisecond();
          continue;
        }
        this.#stalled = true;
        // Only its newline is missing: the line is whole, and must not be told to have failed.
        if (offset === bytes.length - 1) {
          this.#torn = true;
          return;
        }
        // Nothing written leaves things as they were; otherwise the stump ends in the middle unless only the newline got out.
        if (offset > 0) this.#torn = bytes[offset - 1] !== NEWLINE;
        throw error;
      }
    }
    this.#stalled = false;
    this.#torn = false;
  }

  /** Opens the file again under its path, after a rotation. The old one stays in use when that fails. @throws the error of open(2). */
  reopen(): void {
    const before = this.#fd;
    this.#fd = open(this.#destination);
    this.#torn = endsTorn(this.#destination);
    if (before !== 1) closeSync(before);
  }

  /** A line after this fails: its descriptor may belong to another file by then. */
  close(): void {
    if (this.#fd !== 1) closeSync(this.#fd);
    this.#fd = CLOSED;
  }
}

/**
 * Non-blocking, because a blocking write to a full pipe or a FIFO without a reader would stop the process for as long as the
 * reader likes. Standard output is opened anew for that: the flag belongs to the open file, which others share.
 */
function open(destination: Destination): number {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
  if ('path' in destination) return openSync(destination.path, flags | constants.O_CREAT, 0o600);
  try {
    return openSync('/dev/stdout', flags);
  } catch {
    // A socket, or a pipe that belongs to another user: only the inherited descriptor is left.
    return destination.fd;
  }
}

/** Whether a process before us broke off in the middle of its last line. A file that cannot be read counts as whole. */
function endsTorn(destination: Destination): boolean {
  if (!('path' in destination)) return false;
  try {
    const file = statSync(destination.path);
    if (!file.isFile() || file.size === 0) return false;
    const fd = openSync(destination.path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const last = Buffer.alloc(1);
      return readSync(fd, last, 0, 1, file.size - 1) === 1 && last[0] !== NEWLINE;
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

function isAgain(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

const never = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps without using the processor and without letting anything else run. */
function pauseOneMillisecond(): void {
  Atomics.wait(never, 0, 0, 1);
}
