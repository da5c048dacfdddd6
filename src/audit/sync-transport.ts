import Transport from 'winston-transport';
import type { FdWriter } from './fd-writer.ts';

/** On an info object: the finished line. */
export const lineOf: unique symbol = Symbol('line');
/** On an info object: told whether the line was written. */
export const settle: unique symbol = Symbol('settle');

/** What the transport needs of a winston info object. */
export interface LineInfo {
  readonly level: 'info';
  readonly message: '';
  readonly [lineOf]: string;
  readonly [settle]: (error?: unknown) => void;
}

/**
 * A winston transport that has written a line, or failed, when `log` returns. winston's own transports buffer, and lose what
 * they hold when the process dies. A failed write is told to the line's own `settle`, never to the stream: an error there
 * would make winston drop the transport for good.
 */
export class SyncTransport extends Transport {
  readonly #writer: FdWriter;

  constructor(writer: FdWriter) {
    super({ level: 'info' });
    this.#writer = writer;
  }

  override log(info: LineInfo, next: () => void): void {
    let failure: unknown;
    try {
      this.#writer.writeLine(info[lineOf]);
    } catch (error) {
      failure = error;
    }
    info[settle](failure);
    next();
  }
}
