import { Chain, withHash } from '../../../../src/audit/chain.ts';
import { HeadSigner, type SignedHead } from '../../../../src/audit/head.ts';
import { type AuditRecord, formatRecord } from '../../../../src/audit/record.ts';
import type { VerifyReport } from '../../../../src/audit/verify/report.ts';
import { Verifier, type VerifierOptions } from '../../../../src/audit/verify/verifier.ts';

export const signer = new HeadSigner(Buffer.alloc(32, 'one'));

const record = (name: string): AuditRecord => ({
  event: 'admission',
  verdict: 'allowed',
  who: { user: 'alice', groups: ['devs'] },
  what: { operation: 'CREATE', apiVersion: 'v1', kind: 'Pod', namespace: 'payments', name },
  message: `{"verdict":"granted"} ü ${name}`,
});

/** The printed lines of one process, and its heads. */
export class Written {
  readonly #chain = new Chain();
  readonly lines: string[] = [];

  constructor(count = 0, firstName = 0) {
    for (let i = 0; i < count; i++) this.write(`pod-${firstName + i}`);
  }

  get id(): string {
    return this.#chain.head.chain;
  }

  write(name: string): void {
    const stamp = { ...this.#chain.next(), time: '2026-11-21T09:00:00.000000Z', replica: 'drawbridge-0' };
    const { text, hash } = withHash(formatRecord(stamp, record(name)));
    this.#chain.recordWritten(hash);
    this.lines.push(text);
  }

  /** Counts a lost line, as after a failed write. */
  lose(): void {
    this.#chain.recordLost();
  }

  /** The head of the lines so far. */
  head(by = signer, time = '2026-11-21T09:00:05.000000Z'): SignedHead {
    return by.sign({ ...this.#chain.head, replica: 'drawbridge-0', time });
  }
}

/** Recomputes the hash of a line, as a forger would. */
export const rehashed = (line: string): string => withHash(line.replace(/,"hash":"[0-9a-f]*"}$/, '}')).text;

export type Files = Readonly<Record<string, readonly string[]>>;

export function verified(files: Files, heads: readonly SignedHead[], options: VerifierOptions = {}): VerifyReport {
  const verifier = new Verifier(options);
  for (const head of heads) verifier.head(head);
  for (const [file, lines] of Object.entries(files)) {
    for (const [i, line] of lines.entries()) verifier.line(file, i + 1, Buffer.from(line, 'utf8').toString('latin1'));
    verifier.endOfFile();
  }
  return verifier.report();
}

/** `code file:line` of each finding. */
export const found = ({ findings }: VerifyReport): string[] =>
  findings.map(({ code, at }) => (at ? `${code} ${at.file}:${at.line}` : code));
