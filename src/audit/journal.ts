import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { Chain, type ChainHead, withHash } from './chain.ts';
import { type Destination, FdWriter, isDiskFull, isPipeFull, nameOf, stallMs, type WriteSync } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';

/** One line of JSON for each record. Callers append before they open access, and after its end. */
export interface Journal {
  /**
   * Resolves once the kernel has the line. Rejects with CodedError `AuditUnavailable`; the journal
   * does not retry, and the next line counts it in `lost`.
   */
  append(record: AuditRecord): Promise<void>;
  /** False after a failed append, until one succeeds. */
  readonly available: boolean;
}

export interface OpenJournal extends Journal {
  readonly head: ChainHead;
  /** After a rotation. If it fails, keeps the old file and throws CodedError `AuditUnavailable`. */
  reopen(): void;
  /** Later appends reject. */
  close(): void;
}

interface JournalOptions {
  readonly destination: Destination;
  /** In each line. */
  readonly replica: string;
  readonly clock: Clock;
  /** Lets tests inject disk errors. */
  readonly writeSync?: WriteSync;
}

/** Begins a new chain. Throws CodedError `AuditUnavailable`. */
export function openJournal(options: JournalOptions): OpenJournal {
  const { clock, replica, destination, writeSync } = options;
  const writer = orUnavailable(
    'open',
    destination,
    () => new FdWriter(destination, writeSync ? { clock, writeSync } : { clock }),
  );
  const chain = new Chain();
  let available = true;

  /** If the writer throws, the chain does not advance. */
  const write = (record: AuditRecord): void => {
    const fields = { ...chain.next(), time: formatMicroTime(clock.now()), replica };
    const { text, hash } = withHash(formatRecord(fields, record));
    try {
      writer.writeLine(text);
    } catch (error) {
      chain.recordLost();
      throw error;
    }
    chain.recordWritten(hash);
  };

  return {
    get available() {
      return available;
    },
    get head() {
      return chain.head;
    },
    // Synchronous, so that the chain follows the order of calls.
    async append(record) {
      try {
        write(record);
        available = true;
      } catch (error) {
        available = false;
        throw writeFailed(destination, error);
      }
    },
    reopen: () => orUnavailable('reopen', destination, () => writer.reopen()),
    close: () => writer.close(),
  };
}

function orUnavailable<T>(verb: string, destination: Destination, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    const what = `cannot ${verb} the audit journal ${nameOf(destination)}: ${describe(cause)}`;
    throw unavailable(`${what}; check that the server can create and write this file`, cause);
  }
}

function writeFailed(destination: Destination, cause: unknown): CodedError {
  const what = `cannot write to the audit journal ${nameOf(destination)}`;
  if (isPipeFull(cause)) {
    const why = `its reader did not read for ${stallMs} ms (${describe(cause)})`;
    return unavailable(`${what}: ${why}; check the log collector`, cause);
  }
  const remedy = !('path' in destination)
    ? 'check the log collector'
    : isDiskFull(cause)
      ? 'free disk space'
      : 'check the file';
  return unavailable(`${what}: ${describe(cause)}; ${remedy}, or restart with another --audit-log`, cause);
}

const unavailable = (message: string, cause: unknown): CodedError =>
  new CodedError('AuditUnavailable', message, { cause });
