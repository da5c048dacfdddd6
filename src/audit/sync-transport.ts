import Transport from 'winston-transport';
import type { ChainWriter } from './chain-writer.ts';
import type { AuditRecord } from './record.ts';

/** On an info object: what the line is about. */
export const recordOf: unique symbol = Symbol('record');
/** On an info object: told whether the line was written. */
export const settle: unique symbol = Symbol('settle');

/** What the transport needs of a winston info object. */
export interface LineInfo {
  readonly level: 'info';
  readonly message: '';
  readonly [recordOf]: AuditRecord;
  readonly [settle]: (error?: unknown) => void;
}

/**
 * A winston transport that has written a line, or failed, when `log` returns. winston's own transports buffer, and lose what
 * they hold when the process dies. A failed write is told to the line's own `settle`, never to the stream: an error there
 * would make winston drop the transport for good.
 */
export class SyncTransport extends Transport {
  readonly #writer: ChainWriter;

  constructor(writer: ChainWriter) {
    super({ level: 'info' });
    this.#writer = writer;
  }

  override log(info: LineInfo, next: () => void): void {
    let failure: unknown;
    try {
      this.#writer.append(info[recordOf]);
    } catch (error) {
      failure = error;
    }
    info[settle](failure);
    next();
  }
}
