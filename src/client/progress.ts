import { printable } from '../kit/printable.ts';
import { shorten } from '../kit/shorten.ts';
import type { Io } from './command.ts';

const frames = ['-', '\\', '|', '/'] as const;
/** Columns that a line of progress needs besides its text: the spinner, a space, and the last column, so that the line does not wrap. */
const RESERVED_COLUMNS = 3;
/** Assumed width of a terminal whose width is unknown, characters. */
const DEFAULT_COLUMNS = 80;

/**
 * Shows progress on standard error: on a terminal in one line with a spinner, otherwise in one line for each change. If a text is
 * longer than the line of the spinner, it is first printed in full on lines of its own.
 */
export class Progress {
  readonly #io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'errorColumns'>;
  #shown = '';
  #frame = 0;

  constructor(io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'errorColumns'>) {
    this.#io = io;
  }

  /** Maximum length of a text in the line of the spinner, characters. */
  get #width(): number {
    return (this.#io.errorColumns ?? DEFAULT_COLUMNS) - RESERVED_COLUMNS;
  }

  /** Shows what the command waits for. Does nothing if the text is empty or shown already. */
  show(text: string): void {
    if (text === this.#shown || text === '') return;
    this.#shown = text;
    const isCut = printable(text).length > this.#width;
    if (this.#io.terminal.error && isCut) this.#io.draw('\r\u001b[K');
    if (!this.#io.terminal.error || isCut) this.#io.printError(`${text}\n`);
    this.spin();
  }

  /** Draws the line again, with the next frame of the spinner. */
  spin(): void {
    if (!this.#io.terminal.error || this.#shown === '') return;
    const frame = frames[this.#frame++ % frames.length];
    this.#io.draw(`\r\u001b[K${frame} ${shorten(printable(this.#shown), this.#width)}`);
  }

  /** Removes the line of the spinner. A later `show` draws it again. */
  end(): void {
    if (this.#io.terminal.error && this.#shown !== '') this.#io.draw('\r\u001b[K');
    this.#shown = '';
  }
}
