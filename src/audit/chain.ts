import { hash, randomBytes } from 'node:crypto';

/** The number and the hash of the last line of a chain. */
export interface ChainHead {
  /** 24 random hexadecimal digits, new at each start of a process. */
  readonly chain: string;
  /** 0 before the first line. */
  readonly seq: number;
  /** SHA-256, 64 hexadecimal digits; empty before the first line. */
  readonly hash: string;
}

/** The fields that link the next line to the chain. */
export interface ChainLink {
  readonly chain: string;
  readonly seq: number;
  /** Hash of the line before; empty for the first. */
  readonly prev: string;
  /** Number of lines between the previous line and this one that could not be written. */
  readonly lost: number;
}

/**
 * The lines of one process. Each line carries the hash of the previous one. So a changed, removed, or moved line breaks the chain, unless
 * all later lines are replaced, too. Only written lines have numbers; the next written line counts failed ones in `lost`.
 */
export class Chain {
  readonly #id = randomBytes(12).toString('hex');
  #seq = 0;
  #hash = '';
  #lost = 0;

  get head(): ChainHead {
    return { chain: this.#id, seq: this.#seq, hash: this.#hash };
  }

  /** The link of the next line. Does not advance the chain. */
  next(): ChainLink {
    return { chain: this.#id, seq: this.#seq + 1, prev: this.#hash, lost: this.#lost };
  }

  /** Advances the chain: the next line was written, with this hash. */
  recordWritten(lineHash: string): void {
    this.#seq++;
    this.#hash = lineHash;
    this.#lost = 0;
  }

  /** Counts a line that could not be written. */
  recordLost(): void {
    this.#lost++;
  }
}

/** Appends the member `hash` to a line of JSON: SHA-256 (hex) over the bytes of `line`, which is the line without that member. */
export function withHash(line: string): { readonly text: string; readonly hash: string } {
  const lineHash = hash('sha256', line, 'hex');
  return { text: `${line.slice(0, -1)},"hash":"${lineHash}"}`, hash: lineHash };
}
