import { createLogger, format } from 'winston';
import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { type Destination, FdWriter, type WriteSync } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';
import { type LineInfo, lineOf, SyncTransport, settle } from './sync-transport.ts';

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
  /** Opens the file anew after a rotation; keeps the old one and throws `AuditUnavailable` when that fails. Nothing on standard output. */
  reopen(): void;
  close(): void;
}

export interface JournalOptions {
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
  // The lines are finished; winston only carries them to its transport.
  const logger = createLogger({ format: format((info) => info)(), transports: [new SyncTransport(writer)] });
  let seq = 0;
  let available = true;

  return {
    get available() {
      return available;
    },
    append(record) {
      return new Promise((resolve, reject) => {
        seq++;
        const info: LineInfo = {
          level: 'info',
          message: '',
          [lineOf]: formatRecord({ seq, time: formatMicroTime(clock.now()), replica }, record),
          [settle](error) {
            available = error === undefined;
            if (available) resolve();
            else reject(unavailable('write to', error));
          },
        };
        logger.log(info);
      });
    },
    reopen: () => orUnavailable('reopen', () => writer.reopen()),
    close() {
      logger.close();
      writer.close();
    },
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
