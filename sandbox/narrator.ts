import type { AuditLine } from './server-process.ts';

const colours = process.stdout.isTTY && !process.env['NO_COLOR'];
const paint = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
const bold = paint(1);
const dim = paint(2);
const green = paint(32);

const indent = ' '.repeat(5);

/** Prints a demo in steps on standard output: what happens, then the evidence for it. */
export class Narrator {
  readonly #startedAt = performance.now();
  #step = 0;

  title(text: string): void {
    console.log(`\n${bold(text)}\n`);
  }

  /** Prints the heading of a step, with the seconds since the demo started. A heading that reports an event follows its observation. */
  step(text: string): void {
    this.#step += 1;
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(1);
    console.log(`${bold(`${this.#step}. ${text}`)} ${dim(`(${seconds} s)`)}`);
  }

  /** A command as a user would type it. `who` is the person, if there are several. */
  command(text: string, who = ''): void {
    console.log(`   ${green(`${who}$`)} ${text}`);
  }

  /** Output, objects: indented under the step. */
  evidence(text: string): void {
    for (const line of text.trimEnd().split('\n')) console.log(`${indent}${line}`);
  }

  audit(line: AuditLine | undefined): void {
    if (!line) throw new Error('the audit trail has no line for this step');
    const { seq, time, event, verdict, code, who, what, replica, chain, prev, hash, ...rest } = line;
    const shown = `audit ${JSON.stringify({ seq, time, event, verdict, code, who, ...rest, what })}`;
    // In a terminal, one line says enough.
    const width = (process.stdout.columns ?? Number.POSITIVE_INFINITY) - indent.length;
    console.log(`${indent}${dim(shown.length > width ? `${shown.slice(0, width - 1)}…` : shown)}`);
  }

  end(text: string): void {
    console.log(`\n${bold(text)}`);
  }
}
