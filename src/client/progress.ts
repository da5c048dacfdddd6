import { printable } from '../kit/printable.ts';
import { shorten } from '../kit/shorten.ts';
import type { Io } from './command.ts';

const frames = ['-', '\\', '|', '/'] as const;
/** Columns that a line of progress needs besides its text: the spinner, a space, and the last column, so that the line does not wrap. */
const PREFIX = 3;
/** Width of a terminal of unknown width. */
const USUAL_COLUMNS = 80;

/** Shows progress on standard error: on a terminal in one line with a spinner, otherwise in one line for each change. */
export class Progress {
  readonly #io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'columns'>;
  #shown = '';
  #frame = 0;

  constructor(io: Pick<Io, 'printError' | 'draw' | 'terminal' | 'columns'>) {
    this.#io = io;
  }

  /** Shows what the command waits for now. */
  say(text: string): void {
    if (text === this.#shown || text === '') return;
    this.#shown = text;
    if (this.#io.terminal.error) this.turn();
    else this.#io.printError(`${text}\n`);
  }

  /** Draws the line again, with the next frame of the spinner. */
  turn(): void {
    if (!this.#io.terminal.error || this.#shown === '') return;
    const frame = frames[this.#frame++ % frames.length];
    const width = (this.#io.columns ?? USUAL_COLUMNS) - PREFIX;
    this.#io.draw(`\r\u001b[K${frame} ${shorten(printable(this.#shown), width)}`);
  }

  /** Removes the line of the spinner. A later `say` draws it again. */
  end(): void {
    if (this.#io.terminal.error && this.#shown !== '') this.#io.draw('\r\u001b[K');
    this.#shown = '';
  }
}
