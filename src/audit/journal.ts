import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { Chain, type ChainHead, withHash } from './chain.ts';
import { type Destination, FdWriter, type WriteSync } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';

/** The audit journal: one line of JSON for each decision. Callers append before a decision opens access, and after access has ended. */
export interface Journal {
  /**
   * Resolves once the kernel has the line. Rejects with CodedError `AuditUnavailable` if the line could not be written. The journal does
   * not retry it; the next line that it writes counts it in `lost`.
   */
  append(record: AuditRecord): Promise<void>;
  /** False after a failed append, until one succeeds. */
  readonly available: boolean;
}

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

interface JournalOptions {
  readonly destination: Destination;
  /** Name of this process among its replicas. */
  readonly replica: string;
  readonly clock: Clock;
  /** Replaces write(2), so that tests can inject disk errors. */
  readonly writeSync?: WriteSync;
}

/** @throws CodedError `AuditUnavailable` if the destination cannot be opened, because a server without a journal cannot grant anything. */
export function openJournal(options: JournalOptions): OpenJournal {
  const { clock, replica, destination, writeSync } = options;
  const writer = orUnavailable('open', () => new FdWriter(destination, writeSync ? { clock, writeSync } : { clock }));
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
        throw unavailable('write to', error);
      }
    },
    reopen: () => orUnavailable('reopen', () => writer.reopen()),
    close: () => writer.close(),
  };
}

function orUnavailable<T>(verb: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw unavailable(verb, error);
  }
}

function unavailable(verb: string, cause: unknown): CodedError {
  return new CodedError('AuditUnavailable', `cannot ${verb} the audit journal: ${describe(cause)}`, { cause });
}
