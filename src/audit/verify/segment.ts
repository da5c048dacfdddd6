import type { ChainLine } from './read-line.ts';
import type { Finding, Place } from './report.ts';

interface End {
  readonly seq: number;
  readonly prev: string;
  readonly hash: string;
  readonly at: Place;
}

/** The lines of one chain in one file: only the ends are kept, so files may be of any length. */
export class Segment {
  readonly first: End;
  #last: End;
  lost = 0;

  constructor(line: ChainLine, at: Place) {
    this.first = { ...line, at };
    this.#last = this.first;
    this.lost = line.lost;
  }

  get last(): End {
    return this.#last;
  }

  /** Takes the next line of the file; false when it is not after the last one. */
  add(line: ChainLine, at: Place, report: (finding: Finding) => void): boolean {
    const next = { ...line, at };
    if (line.seq <= this.#last.seq) {
      report(outOfOrder(line.chain, next, this.#last));
      return false;
    }
    expectContinuation(line.chain, this.#last, next, report);
    this.#last = next;
    this.lost += line.lost;
    return true;
  }
}

/** Reports whatever keeps `next`, which has a higher number, from being the line right after `before`. */
export function expectContinuation(chain: string, before: End, next: End, report: (finding: Finding) => void): void {
  if (next.seq > before.seq + 1) {
    const missing = numbers(before.seq + 1, next.seq - 1);
    const message = `${missing} missing between ${place(before.at)} and ${place(next.at)}`;
    report({ code: 'Missing', chain, at: next.at, message });
  } else if (next.prev !== before.hash) {
    const message = `does not continue ${place(before.at)}: one of the two was replaced`;
    report({ code: 'Broken', chain, at: next.at, message });
  }
}

export const outOfOrder = (chain: string, next: Pick<End, 'seq' | 'at'>, before: Pick<End, 'seq' | 'at'>): Finding => ({
  code: 'OutOfOrder',
  chain,
  at: next.at,
  message: `line ${next.seq} of the chain comes after line ${before.seq} (${place(before.at)}): moved, or there twice`,
});

export const numbers = (from: number, to: number): string =>
  from === to ? `line ${from} of the chain is` : `lines ${from} to ${to} of the chain are`;

export const place = ({ file, line }: Place): string => `${file}:${line}`;
