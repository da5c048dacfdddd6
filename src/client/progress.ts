import { printable } from '../kit/printable.ts';
import { shorten } from '../kit/shorten.ts';
import type { Io } from './command.ts';

const frames = ['-', '\\', '|', '/'] as const;
/** The spinner, a space, and the last column, so that the line does not wrap. */
const RESERVED_COLUMNS = 3;
/** Of a terminal whose width is unknown. */
const DEFAULT_COLUMNS = 80;

/** Progress on standard error: on a terminal one line with a spinner, otherwise a line a change. */
export class Progress {
  readonly #io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'errorColumns'>;
  #shown = '';
  #frame = 0;

  constructor(io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'errorColumns'>) {
    this.#io = io;
  }

  /** Maximum text in the line of the spinner. */
  get #width(): number {
    return (this.#io.errorColumns ?? DEFAULT_COLUMNS) - RESERVED_COLUMNS;
  }

  /** Does nothing if the text is empty or shown already. */
  show(text: string): void {
    if (text === this.#shown || text === '') return;
    this.#shown = text;
    const isCut = printable(text).length > this.#width;
    if (this.#io.terminal.error && isCut) this.#io.draw('\r\u001b[K');
    if (!this.#io.terminal.error || isCut) this.#io.printError(`${text}\n`);
    this.spin();
  }

  spin(): void {
    if (!this.#io.terminal.error || this.#shown === '') return;
    const frame = frames[this.#frame++ % frames.length];
    this.#io.draw(`\r\u001b[K${frame} ${shorten(printable(this.#shown), this.#width)}`);
  }

  /** A later `show` draws the line again. */
  end(): void {
    if (this.#io.terminal.error && this.#shown !== '') this.#io.draw('\r\u001b[K');
    this.#shown = '';
  }
}
