import assert from 'node:assert/strict';
import fc from 'fast-check';
import { anyCharacter } from '../../../support/any-character.ts';
import { runs } from '../../../support/runs.ts';
import { type Files, rehashed, verified, Written } from './journals.ts';

/** Lines of two processes that write in turns, and their heads, which exclude the last line of each. */
function journal(turns: readonly boolean[]) {
  const both = [new Written(1), new Written(1)] as const;
  const lines = both.flatMap((one) => one.lines);
  for (const [i, turn] of turns.entries()) {
    const one = both[turn ? 1 : 0];
    one.write(`pod-${i}`);
    lines.push(one.lines.at(-1) ?? '');
  }
  return { lines, heads: both.map((one) => one.head()) };
}

const turns = fc.array(fc.boolean(), { minLength: 2, maxLength: 12 });
const index = fc.nat(1_000_000);

/** Splits lines into files, like rotations, and reorders the files. */
function rotated(lines: readonly string[], cuts: readonly number[], order: boolean): Files {
  const ends = [...new Set([...cuts.map((cut) => cut % (lines.length + 1)), lines.length])].sort((a, b) => a - b);
  const files = ends.map((end, i): [string, string[]] => [`file-${i}`, lines.slice(ends[i - 1] ?? 0, end)]);
  return Object.fromEntries(order ? files.reverse() : files);
}

type Change = (lines: readonly string[], a: number, b: number, text: string) => string[];

const changes: Readonly<Record<string, Change>> = {
  'a byte replaced': (lines, a, b, text) => edited(lines, a, (at) => [at, at + 1, text.slice(0, 1)], b),
  'bytes inserted': (lines, a, b, text) => edited(lines, a, (at) => [at + 1, at + 1, text], b),
  'bytes removed': (lines, a, b, text) => edited(lines, a, (at) => [at, at + text.length, ''], b),
  'a field changed and the hash recomputed': (lines, a, _, text) => {
    const changed = (line = ''): string => line.replace('"verdict":"allowed"', `"verdict":${JSON.stringify(text)}`);
    return lines.with(a % lines.length, rehashed(changed(lines[a % lines.length])));
  },
  'a line removed': (lines, a) => lines.filter((_, i) => i !== a % lines.length),
  'lines removed': (lines, a, b) => lines.filter((_, i) => i < a % lines.length || i > (a % lines.length) + (b % 4)),
  'a line repeated': (lines, a, b) => lines.toSpliced(b % (lines.length + 1), 0, lines[a % lines.length] ?? ''),
  'a line moved': (lines, a, b) => {
    const rest = lines.filter((_, i) => i !== a % lines.length);
    return rest.toSpliced(b % (rest.length + 1), 0, lines[a % lines.length] ?? '');
  },
  'two lines exchanged': (lines, a, b) => {
    const [i, j] = [a % lines.length, b % lines.length];
    return lines.with(i, lines[j] ?? '').with(j, lines[i] ?? '');
  },
  'a line of another journal inserted': (lines, a, _, text) =>
    lines.toSpliced(a % (lines.length + 1), 0, new Written(1, text.length).lines[0] ?? ''),
};

/** Replaces a part of one line. */
function edited(
  lines: readonly string[],
  which: number,
  cut: (at: number) => [from: number, to: number, text: string],
  where: number,
): string[] {
  return lines.map((line, i) => {
    if (i !== which % lines.length) return line;
    const [from, to, text] = cut(where % line.length);
    return line.slice(0, from) + text + line.slice(to);
  });
}

/** The lines of each chain in order. Equal sequences mean that nothing was changed. */
function sequences(lines: readonly string[]): string {
  const chainOf = (line: string): string => line.slice(0, 34);
  return JSON.stringify([...lines].sort((a, b) => (chainOf(a) < chainOf(b) ? -1 : chainOf(a) > chainOf(b) ? 1 : 0)));
}

describe('the verifier of audit journals, with random changes,', () => {
  it('finds nothing in unchanged journals with any rotation', () => {
    fc.assert(
      fc.property(turns, fc.array(index, { maxLength: 4 }), fc.boolean(), (who, cuts, order) => {
        const { lines, heads } = journal(who);
        const { verdict, findings } = verified(rotated(lines, cuts, order), heads);
        assert.deepEqual(findings, []);
        assert.equal(verdict, 'intact');
      }),
      { seed: 5, numRuns: runs(300) },
    );
  });

  for (const [title, change] of Object.entries(changes)) {
    it(`finds ${title}`, () => {
      const text = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 6 }).filter((some) => !/[\r\n]/.test(some));
      fc.assert(
        fc.property(turns, index, index, text, fc.array(index, { maxLength: 3 }), (who, a, b, some, cuts) => {
          const { lines, heads } = journal(who);
          const changed = change(lines, a, b, some);
          fc.pre(sequences(changed) !== sequences(lines));
          // Files have no order, so a move between the ends of files is no change.
          const inOne = title.includes('moved') || title.includes('exchanged');
          const { verdict } = verified(rotated(changed, inOne ? [] : cuts, b % 2 === 0), heads);
          // A chain without heads looks like a chain that is too new for a head.
          assert.equal(verdict, title.includes('another journal') ? 'unsigned' : 'changed');
        }),
        { seed: 7, numRuns: runs(300) },
      );
    });
  }
});
