import { readFile } from 'node:fs/promises';
import { percentile } from '../../support/percentile.ts';

export type Figures = Readonly<Record<string, number>>;

export const median = (values: readonly number[]): number => percentile(values, 0.5);

/** The median of each figure over several rounds. */
export function medians(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name] ?? Number.NaN))]));
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

/**
 * Prints a table of the rounds with their median, then one line of JSON. Returns the exit code: 1 when CHECK is set and a median
 * is outside its range in ranges.json.
 */
export async function report(bench: string, rounds: readonly Figures[]): Promise<number> {
  const middle = medians(rounds);
  const ranges = JSON.parse(await readFile(new URL('../ranges.json', import.meta.url), 'utf8')) as Record<
    string,
    Record<string, Range>
  >;
  const outside: string[] = [];
  console.log(`\n${'figure'.padEnd(30)}${'median'.padStart(12)}${'min'.padStart(12)}${'max'.padStart(12)}   range`);
  for (const [name, value] of Object.entries(middle)) {
    const all = rounds.map((round) => round[name] ?? Number.NaN);
    const range = ranges[bench]?.[name];
    const ok = range === undefined || (value >= (range.min ?? -Infinity) && value <= (range.max ?? Infinity));
    if (!ok) outside.push(name);
    const verdict = range === undefined ? '' : `   ${ok ? 'ok' : 'OUTSIDE'} ${describeRange(range)}`;
    console.log(`${name.padEnd(30)}${cell(value)}${cell(Math.min(...all))}${cell(Math.max(...all))}${verdict}`);
  }
  console.log(JSON.stringify({ bench, rounds: rounds.length, ...rounded(middle), outside }));
  return process.env['CHECK'] && outside.length > 0 ? 1 : 0;
}

/** Reads a positive integer from the environment. */
export function numberFrom(name: string, otherwise: number): number {
  const text = process.env[name];
  if (!text) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`${name} must be a whole number of at least 1; found ${text}`);
  return value;
}

export function rounded(figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, Math.round(value * 100) / 100]));
}

const cell = (value: number): string => value.toFixed(2).padStart(12);

const describeRange = ({ min, max }: Range): string =>
  [min === undefined ? '' : `>= ${min}`, max === undefined ? '' : `<= ${max}`].filter(Boolean).join(' and ');
