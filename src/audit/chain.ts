import { hash, randomBytes } from 'node:crypto';

/** The last line of a chain. */
export interface ChainHead {
  /** 24 random hexadecimal digits, new at each start of a process. */
  readonly chain: string;
  /** 0 before the first line. */
  readonly seq: number;
  /** SHA-256 in hex; empty before the first line. */
  readonly hash: string;
}

/** What links the next line to the chain. */
export interface ChainLink {
  readonly chain: string;
  readonly seq: number;
  /** Hash of the line before; empty for the first. */
  readonly prev: string;
  /** Lines since the previous one that could not be written. */
  readonly lost: number;
}

/**
 * The lines of one process. Each carries the hash of the previous one, so a changed, removed, or
 * moved line breaks the chain, unless all later ones are replaced, too.
 *
 *   seq 1, prev "", hash A  <──  seq 2, prev A, hash B  <──  seq 3, prev B, hash C  <── signed head
 *
 * Only written lines have numbers; the next one counts those that failed in `lost`.
 */
export class Chain {
  readonly #id = randomBytes(12).toString('hex');
  #seq = 0;
  #hash = '';
  #lost = 0;

  get head(): ChainHead {
    return { chain: this.#id, seq: this.#seq, hash: this.#hash };
  }

  /** Does not advance the chain. */
  next(): ChainLink {
    return { chain: this.#id, seq: this.#seq + 1, prev: this.#hash, lost: this.#lost };
  }

  /** The next line was written, with this hash. */
  recordWritten(lineHash: string): void {
    this.#seq++;
    this.#hash = lineHash;
    this.#lost = 0;
  }

  /** A line could not be written. */
  recordLost(): void {
    this.#lost++;
  }
}

/** Appends `hash`: SHA-256 (hex) over the bytes of `line`, which is the line without it. */
export function withHash(line: string): { readonly text: string; readonly hash: string } {
  const lineHash = hash('sha256', line, 'hex');
  return { text: `${line.slice(0, -1)},"hash":"${lineHash}"}`, hash: lineHash };
}
