import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { Chain, type ChainHead, withHash } from './chain.ts';
import { type Destination, FdWriter, type WriteSync } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';

/** The audit trail: one line of JSON a decision, written before the decision takes effect. */
export interface Journal {
  /**
   * Resolves once the kernel has the line.
   * Rejects with CodedError `AuditUnavailable` when it could not be written; the next record is tried afresh.
   */
  append(record: AuditRecord): Promise<void>;
  /** False after a failed append, until one succeeds. */
  readonly available: boolean;
}

export interface OpenJournal extends Journal {
  /** How far the chain of lines has got; one for each process. */
  readonly head: ChainHead;
  /** Opens the file anew after a rotation; keeps the old one and throws `AuditUnavailable` when that fails. Nothing on standard output. */
  reopen(): void;
  close(): void;
}

interface JournalOptions {
  readonly destination: Destination;
  /** Name of this process among its replicas. */
  readonly replica: string;
  readonly clock: Clock;
  /** The write(2) underneath; tests put disk errors here. */
  readonly writeSync?: WriteSync;
}

/** @throws CodedError `AuditUnavailable` when the destination cannot be opened: a server without a journal could not grant anything. */
export function openJournal(options: JournalOptions): OpenJournal {
  const { clock, replica, destination, writeSync } = options;
  const writer = orUnavailable('open', () => new FdWriter(destination, writeSync ? { clock, writeSync } : { clock }));
  const chain = new Chain();
  let available = true;

  /** The line is written when this returns. Throws what the writer throws; the record then has no place in the chain. */
  const write = (record: AuditRecord): void => {
    const stamp = { ...chain.next(), time: formatMicroTime(clock.now()), replica };
    const { sealed, hash } = withHash(formatRecord(stamp, record));
    try {
      writer.writeLine(sealed);
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
    // Synchronous up to the write, so that the chain follows the order of calls.
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
