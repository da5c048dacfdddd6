import { hash, randomBytes } from 'node:crypto';

/** How far a chain has got: the number and the hash of its last line. */
export interface ChainHead {
  /** 24 hexadecimal digits, drawn anew at each start of a process. */
  readonly chain: string;
  /** 0 before the first line. */
  readonly seq: number;
  /** SHA-256, 64 hexadecimal digits; empty before the first line. */
  readonly hash: string;
}

/** The place of the next line. */
export interface ChainLink {
  readonly chain: string;
  readonly seq: number;
  /** Hash of the line before; empty for the first. */
  readonly prev: string;
  /** Lines since the one before that could not be written. */
  readonly lost: number;
}

/**
 * The lines of one process, each of which carries the hash of the one before, so that none can be changed, taken away or moved
 * without breaking every later one. Only what was written counts: a line that failed leaves no gap but the next one says `lost`.
 */
export class Chain {
  readonly #id = randomBytes(12).toString('hex');
  #seq = 0;
  #hash = '';
  #lost = 0;

  get head(): ChainHead {
    return { chain: this.#id, seq: this.#seq, hash: this.#hash };
  }

  next(): ChainLink {
    return { chain: this.#id, seq: this.#seq + 1, prev: this.#hash, lost: this.#lost };
  }

  /** The next line was written, with this hash. */
  recordWritten(lineHash: string): void {
    this.#seq++;
    this.#hash = lineHash;
    this.#lost = 0;
  }

  /** The next line could not be written. */
  recordLost(): void {
    this.#lost++;
  }
}

/** The line as it is printed, and its hash: SHA-256 over the bytes of `line`, which is the printed line without its last member. */
export function withHash(line: string): { readonly sealed: string; readonly hash: string } {
  const lineHash = hash('sha256', line, 'hex');
  return { sealed: `${line.slice(0, -1)},"hash":"${lineHash}"}`, hash: lineHash };
}
