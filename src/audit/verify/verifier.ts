import { quote } from '../../kit/errors.ts';
import { isSigned, type SignedHead } from '../head.ts';
import { type ChainLine, readLine } from './lines.ts';
import { type ChainReport, type Finding, type Place, place, type VerifyReport } from './report.ts';

export interface VerifierOptions {
  /** That may sign heads, in base64. Default: the key that each head names. */
  readonly keys?: readonly string[];
  /** Accept absent older lines: before the first of a chain, and whole chains. Default false. */
  readonly partial?: boolean;
}

/** Findings, and stumps, in the report. */
const MAX_LISTED = 1000;

/** Pass all heads, then every line of each file and `endOfFile`; then call `report`. */
export class Verifier {
  readonly #options: VerifierOptions;
  /** By chain, then by number of the line. */
  readonly #heads = new Map<string, Map<number, SignedHead>>();
  readonly #keys = new Set<string>();
  /** By chain, then by file. */
  readonly #segments = new Map<string, Map<string, Segment>>();
  /** By chain: the last line that matches a head. */
  readonly #signedTo = new Map<string, number>();
  /** Incomplete lines that no `lost` count of a later line accounts for yet. */
  #unaccounted: { at: Place; chain: string | undefined }[] = [];
  readonly #stumps: Place[] = [];
  readonly #findings: Finding[] = [];
  #more = 0;

  constructor(options: VerifierOptions = {}) {
    this.#options = options;
  }

  /** `BadHead` if its signature or its key is wrong. */
  head(head: SignedHead): void {
    const problem = this.#headProblem(head);
    if (problem) {
      this.#report({ code: 'BadHead', chain: head.chain, message: `the head at line ${head.seq}: ${problem}` });
      return;
    }
    this.#keys.add(head.key);
    getOrCreate(this.#heads, head.chain, () => new Map()).set(head.seq, head);
  }

  #headProblem(head: SignedHead): string | undefined {
    const { keys } = this.#options;
    if (!isSigned(head)) return 'its signature is wrong';
    if (!keys || keys.includes(head.key)) return undefined;
    return `it is signed by key ${head.key}, which is none of the given keys; if the server had this key earlier, give it, too, with --key`;
  }

  unreadableHead(name: string): void {
    this.#report({ code: 'BadHead', message: `the entry ${quote(name)} is not a signed head` });
  }

  /** `number`: from 1. `text`: one character for each byte, as of `byteLines`. */
  line(file: string, number: number, text: string): void {
    const at = { file, line: number };
    const reading = readLine(text);
    if (reading.is === 'line') this.#addLine(reading.line, at);
    else if (reading.is === 'stump') this.#unaccounted.push({ at, chain: reading.chain });
    else if (reading.is === 'recordLike') this.#report(inserted(at));
  }

  /** Incomplete lines that no line follows remain from its last writes. */
  endOfFile(): void {
    for (const { at } of this.#unaccounted) this.#addStump(at);
    this.#unaccounted = [];
  }

  /** Call it once, at the end. */
  report(): VerifyReport {
    const chainIds = [...new Set([...this.#heads.keys(), ...this.#segments.keys()])];
    const chains = chainIds.map((chain) => this.#chainReport(chain));
    const isUnsigned = chains.some(({ last, signedTo }) => last > 0 && signedTo === 0);
    const verdictWithoutFindings = isUnsigned ? 'unsigned' : 'intact';
    return {
      verdict: this.#findings.length > 0 ? 'changed' : verdictWithoutFindings,
      findings: this.#findings,
      chains,
      stumps: this.#stumps,
      keys: [...this.#keys],
      more: this.#more,
    };
  }

  #addLine(line: ChainLine, at: Place): void {
    this.#account(line);
    const { chain } = line;
    const segment = this.#segments.get(chain)?.get(at.file);
    if (!line.intact) {
      this.#report({ code: 'Changed', chain, at, message: `line ${line.seq} of the chain was changed` });
      // If it fits the position, go on, so that one changed line is one finding.
      if (segment ? line.seq !== segment.last.seq + 1 : !this.#heads.has(chain)) return;
    }
    if (!segment)
      getOrCreate(this.#segments, chain, () => new Map<string, Segment>()).set(at.file, new Segment(line, at));
    else if (!segment.add(line, at, (finding) => this.#report(finding))) return;
    this.#compareHead(line, at);
  }

  #compareHead({ chain, seq, hash }: ChainLine, at: Place): void {
    const head = this.#heads.get(chain)?.get(seq);
    if (!head) return;
    if (head.hash === hash) this.#signedTo.set(chain, Math.max(seq, this.#signedTo.get(chain) ?? 0));
    else {
      const message = `the head signed ${head.time} has another line ${seq}: that line or an earlier one was replaced`;
      this.#report({ code: 'HeadMismatch', chain, at, message });
    }
  }

  /** `lost` accounts for as many incomplete lines before; the first line of a chain for all. */
  #account({ chain, seq, lost }: ChainLine): void {
    if (this.#unaccounted.length === 0) return;
    let accounted = seq === 1 ? Number.POSITIVE_INFINITY : lost;
    this.#unaccounted = this.#unaccounted.filter((stump) => {
      if (stump.chain !== undefined && stump.chain !== chain && seq !== 1) return true;
      if (accounted-- > 0) this.#addStump(stump.at);
      else this.#report(inserted(stump.at));
      return false;
    });
  }

  #chainReport(chain: string): ChainReport {
    const segments = [...(this.#segments.get(chain)?.values() ?? [])].sort((a, b) => a.first.seq - b.first.seq);
    const heads = [...(this.#heads.get(chain)?.values() ?? [])].sort((a, b) => a.seq - b.seq);
    const first = segments[0]?.first;
    const newest = heads.at(-1);
    this.#expectStart(chain, first);
    for (const [i, segment] of segments.entries()) {
      const before = segments[i - 1]?.last;
      if (!before) continue;
      if (segment.first.seq <= before.seq) this.#report(outOfOrder(chain, segment.first, before));
      else expectContinuation(chain, before, segment.first, (finding) => this.#report(finding));
    }
    const last = Math.max(0, ...segments.map((segment) => segment.last.seq));
    const mayBeAbsent = last === 0 && this.#options.partial;
    if (newest && newest.seq > last && !mayBeAbsent) {
      const orPartial =
        last === 0 && !this.#options.partial
          ? '; if you do not have them, --partial accepts that they are missing'
          : '';
      const found = `${linesAre(last + 1, newest.seq)} missing at the end: the head signed ${newest.time} covers them`;
      const message = `${found}; if other files have them, give these files, too${orPartial}`;
      this.#report({ code: 'Missing', chain, message });
    }
    const signedTo = this.#signedTo.get(chain) ?? 0;
    return {
      chain,
      ...(newest ? { replica: newest.replica } : {}),
      first: first?.seq ?? 0,
      last,
      signedTo,
      unproven: last - Math.max(signedTo, (first?.seq ?? 1) - 1),
      lost: segments.reduce((sum, segment) => sum + segment.lost, 0),
    };
  }

  #expectStart(chain: string, first: Segment['first'] | undefined): void {
    if (!first || this.#options.partial) return;
    if (first.seq > 1) {
      const message = `${linesAre(1, first.seq - 1)} missing before this; if older files have them, give these files, too; if you do not have them, --partial accepts that they are missing`;
      this.#report({ code: 'Missing', chain, at: first.at, message });
    } else if (first.prev !== '') {
      this.#report({
        code: 'Broken',
        chain,
        at: first.at,
        message: 'the first line of the chain continues another line',
      });
    }
  }

  #addStump(at: Place): void {
    if (this.#stumps.length < MAX_LISTED) this.#stumps.push(at);
  }

  #report(finding: Finding): void {
    if (this.#findings.length < MAX_LISTED) this.#findings.push(finding);
    else this.#more++;
  }
}

const inserted = (at: Place): Finding => ({
  code: 'Inserted',
  at,
  message: 'the line resembles an audit record but belongs to no chain',
});

function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const created = create();
  map.set(key, created);
  return created;
}

interface BoundaryLine {
  readonly seq: number;
  readonly prev: string;
  readonly hash: string;
  readonly at: Place;
}

/** One chain in one file. Keeps only the first and last line, so files can be of any length. */
class Segment {
  readonly first: BoundaryLine;
  #last: BoundaryLine;
  lost = 0;

  constructor(line: ChainLine, at: Place) {
    this.first = { ...line, at };
    this.#last = this.first;
    this.lost = line.lost;
  }

  get last(): BoundaryLine {
    return this.#last;
  }

  /** False if its number is not above that of the last one. */
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

/** `next` has a higher number. Reports why it does not directly continue `before`. */
function expectContinuation(
  chain: string,
  before: BoundaryLine,
  next: BoundaryLine,
  report: (finding: Finding) => void,
): void {
  if (next.seq > before.seq + 1) {
    const missing = linesAre(before.seq + 1, next.seq - 1);
    const message = `${missing} missing between ${place(before.at)} and ${place(next.at)}; if another file has them, give it, too`;
    report({ code: 'Missing', chain, at: next.at, message });
  } else if (next.prev !== before.hash) {
    const message = `the line does not continue ${place(before.at)}: one of the two was replaced`;
    report({ code: 'Broken', chain, at: next.at, message });
  }
}

const outOfOrder = (
  chain: string,
  next: Pick<BoundaryLine, 'seq' | 'at'>,
  before: Pick<BoundaryLine, 'seq' | 'at'>,
): Finding => ({
  code: 'OutOfOrder',
  chain,
  at: next.at,
  message: `line ${next.seq} of the chain comes after line ${before.seq} (${place(before.at)}): it was moved, or is present twice`,
});

/** Such as `lines 3 to 5 of the chain are`. */
const linesAre = (from: number, to: number): string =>
  from === to ? `line ${from} of the chain is` : `lines ${from} to ${to} of the chain are`;
