import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { Chain, type ChainHead, withHash } from './chain.ts';
import { type Destination, FdWriter, isDiskFull, isPipeFull, nameOf, stallMs, type WriteSync } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';

/** The audit journal: one line of JSON for each record. Callers append before they open access, and after access has ended. */
export interface Journal {
  /**
   * Resolves once the kernel has the line. Rejects with CodedError `AuditUnavailable` if the line could not be written. The journal does
   * not retry it; the next line that it writes counts it in `lost`.
   */
  append(record: AuditRecord): Promise<void>;
  /** False after a failed append, until one succeeds. */
  readonly available: boolean;
}

/** The journal of this process. */
export interface OpenJournal extends Journal {
  /** Head of this process's chain of lines. */
  readonly head: ChainHead;
  /**
   * Opens the file again after a rotation. If that fails, keeps the old file and throws CodedError `AuditUnavailable`. Without a file,
   * opens standard output again, which has no visible effect.
   */
  reopen(): void;
  /** Closes the file. Later appends reject. */
  close(): void;
}

/** Where the journal writes, and as which replica. */
interface JournalOptions {
  readonly destination: Destination;
  /** Name of this replica, in each line. */
  readonly replica: string;
  readonly clock: Clock;
  /** Replaces write(2), so that tests can inject disk errors. */
  readonly writeSync?: WriteSync;
}

/**
 * Opens the journal, and begins a new chain of lines. Throws CodedError `AuditUnavailable` if the destination cannot be opened.
 */
export function openJournal(options: JournalOptions): OpenJournal {
  const { clock, replica, destination, writeSync } = options;
  const writer = orUnavailable(
    'open',
    destination,
    () => new FdWriter(destination, writeSync ? { clock, writeSync } : { clock }),
  );
  const chain = new Chain();
  let available = true;

  /** Writes the line synchronously. Throws what the writer throws; the chain then does not advance. */
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
    // The write is synchronous, so that the chain follows the order of calls.
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
