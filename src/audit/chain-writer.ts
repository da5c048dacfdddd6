import { type Clock, formatMicroTime } from '../kit/clock.ts';
import { Chain, type ChainHead, seal } from './chain.ts';
import type { FdWriter } from './fd-writer.ts';
import { type AuditRecord, formatRecord } from './record.ts';

/** Appends records to a writer as lines of one chain. A rotation of the file underneath does not interrupt it. */
export class ChainWriter {
  readonly #writer: FdWriter;
  readonly #replica: string;
  readonly #clock: Clock;
  readonly #chain = new Chain();

  constructor(writer: FdWriter, options: { readonly replica: string; readonly clock: Clock }) {
    this.#writer = writer;
    this.#replica = options.replica;
    this.#clock = options.clock;
  }

  get head(): ChainHead {
    return this.#chain.head;
  }

  /** The line is written when this returns. @throws what the writer throws; the record then has no place in the chain. */
  append(record: AuditRecord): void {
    const stamp = { ...this.#chain.next(), time: formatMicroTime(this.#clock.now()), replica: this.#replica };
    const { sealed, hash } = seal(formatRecord(stamp, record));
    try {
      this.#writer.writeLine(sealed);
    } catch (error) {
      this.#chain.failed();
      throw error;
    }
    this.#chain.written(hash);
  }
}
