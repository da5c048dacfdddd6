/**
 * The output of a session is text of another person. Its control sequences could make the auditor's
 * terminal write to standard input or the clipboard, print, or change its title. The filter passes
 * text, colors, and movements within the screen, and drops all else.
 */

/** Move the cursor, ring the bell, shift the character set. ENQ would make a terminal answer. */
const allowedControls = '\u0007\b\t\n\v\f\r\u000e\u000f';
/** Of a sequence, characters; a longer one is dropped. */
const MAX_PARAMETERS = 64;
/** Of a dropped string, such as a title: one without an end cannot hide the rest of a session. */
const MAX_STRING = 4096;

/** CSI sequences that move, scroll, erase, insert, color, or set tab stops. */
const allowedFinals = /[@A-HJKLMPSTXZ`abdefgmrsu]/;
/** Reverse video, origin, wrapping, cursor, alternate screen; none that report keys or a mouse. */
const allowedModes: readonly string[] = ['5', '6', '7', '12', '25', '47', '1047', '1048', '1049'];
/** Save and restore the cursor, index, next line, tab stop, reverse index. */
const allowedEscapes = '78DEHM';
/** DCS, SOS, OSC, PM, APC, and the title of screen. */
const stringStarts = 'PX]^_k';
/** In place of a full reset (ESC c), which would also erase the lines above the screen. */
const RESET = '\u001b[!p\u001b[H\u001b[2J';
/** What a shell expects: character set, colors, cursor, wrapping, the whole screen scrolling. */
const RESTORE = '\u000f\u001b(B\u001b[m\u001b[4l\u001b[?5;6l\u001b[?7;25h\u001b7\u001b[r\u001b8';

/** Filters the output of a session. A sequence may be split between two calls of `pass`. */
export class TerminalFilter {
  #state: 'text' | 'escape' | 'charset' | 'skip' | 'csi' | 'string' = 'text';
  #sequence = '';
  #length = 0;
  #onAlternateScreen = false;

  pass(text: string): string {
    let out = '';
    for (const character of text) out += this.#next(character);
    return out;
  }

  /** Drops an unfinished sequence, and returns what restores the terminal. */
  end(): string {
    this.#state = 'text';
    const leave = this.#onAlternateScreen ? '\u001b[?1049l' : '';
    this.#onAlternateScreen = false;
    return `${leave}${RESTORE}`;
  }

  #next(character: string): string {
    const code = character.codePointAt(0) ?? 0;
    // An 8-bit control character means the same as ESC and a letter.
    if (code >= 0x80 && code <= 0x9f) return this.#next('\u001b') + this.#next(String.fromCharCode(code - 0x40));
    if (code === 0x1b) {
      this.#state = 'escape';
      return '';
    }
    // CAN and SUB cancel any sequence.
    if (code === 0x18 || code === 0x1a) {
      this.#state = 'text';
      return '';
    }
    if (this.#state === 'string') return this.#string(code);
    // Terminals obey control characters within a sequence.
    if (code < 0x20 || code === 0x7f) return allowedControls.includes(character) ? character : '';
    switch (this.#state) {
      case 'text':
        return character;
      case 'escape':
        return this.#escape(character);
      case 'charset':
        return this.#end(/[0AB]/.test(character) ? `\u001b${this.#sequence}${character}` : '');
      case 'skip':
        return /[ -/]/.test(character) ? '' : this.#end('');
      case 'csi':
        return this.#csi(character);
    }
  }

  #end(out: string): string {
    this.#state = 'text';
    return out;
  }

  #escape(character: string): string {
    this.#sequence = '';
    this.#length = 0;
    if (character === '[') this.#state = 'csi';
    else if (character === '(' || character === ')') {
      this.#state = 'charset';
      this.#sequence = character;
    } else if (stringStarts.includes(character)) this.#state = 'string';
    else if (/[ -/]/.test(character)) this.#state = 'skip';
    else if (character === 'c') return this.#end(RESET);
    else return this.#end(allowedEscapes.includes(character) ? `\u001b${character}` : '');
    return '';
  }

  #csi(character: string): string {
    if (/[ -?]/.test(character)) {
      if (this.#sequence.length <= MAX_PARAMETERS) this.#sequence += character;
      return '';
    }
    const sequence = this.#sequence.length > MAX_PARAMETERS ? '' : this.#allowed(this.#sequence, character);
    return this.#end(sequence);
  }

  /** The sequence if it is safe, without modes that are not allowed; else empty. */
  #allowed(parameters: string, final: string): string {
    if (/^[\d;:]*$/.test(parameters) && allowedFinals.test(final)) {
      // 3J erases the lines above the screen.
      return final === 'J' && !/^[012]?$/.test(parameters) ? '' : `\u001b[${parameters}${final}`;
    }
    // Insert mode. Other modes without `?` lock the keyboard or change what it sends.
    if (parameters === '4' && (final === 'h' || final === 'l')) return `\u001b[4${final}`;
    if (parameters === '!' && final === 'p') return '\u001b[!p';
    if (/^\d? $/.test(parameters) && final === 'q') return `\u001b[${parameters}q`;
    if (/^\?[012]?$/.test(parameters) && (final === 'J' || final === 'K')) return `\u001b[${parameters}${final}`;
    if (!/^\?[\d;]+$/.test(parameters) || (final !== 'h' && final !== 'l')) return '';
    const modes = parameters
      .slice(1)
      .split(';')
      .filter((mode) => allowedModes.includes(mode));
    if (modes.some((mode) => ['47', '1047', '1049'].includes(mode))) this.#onAlternateScreen = final === 'h';
    return modes.length === 0 ? '' : `\u001b[?${modes.join(';')}${final}`;
  }

  #string(code: number): string {
    this.#length += 1;
    if (code === 0x07 || this.#length > MAX_STRING) return this.#end('');
    return '';
  }
}
