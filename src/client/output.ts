import type { KubeObject } from '../api/object.ts';
import { quote } from '../kit/errors.ts';
import { printable } from '../kit/printable.ts';
import { shorten } from '../kit/shorten.ts';
import { wrap } from '../kit/wrap.ts';
import { dumpYaml } from '../kube/yaml.ts';
import { fullName } from './access-requests.ts';
import { type Args, usageProblem } from './args.ts';
import type { Io } from './command.ts';
import { type OutputForm, outputForms } from './common-flags.ts';

export interface Column<T> {
  readonly title: string;
  /** The printer replaces control and invisible characters by `?`. */
  readonly text: (item: T) => string;
  /** Only for `-o wide`. */
  readonly wide?: boolean;
  /** Cells keep up to 1,000 characters on any terminal: names, and texts that say what to do. */
  readonly long?: boolean;
}

export interface Presentation<T> {
  readonly columns: readonly Column<T>[];
  /** For JSON and YAML. */
  readonly object: (item: T) => object;
  /** For `-o name`. */
  readonly name: (item: T) => string;
  /** On a narrow terminal, one block of lines for each item. Default: the lines wrap. */
  readonly blocks?: boolean;
}

/**
 * Lines of a table fit `columns` if possible: the last column is cut or, if `long`, wrapped, and
 * then the widest others are cut.
 */
type Output = Pick<Io, 'print'> & Partial<Pick<Io, 'columns'>>;

/** Of a cell, characters; a longer one is cut. */
const MAX_CELL = 48;
/** With `-o wide`. */
const MAX_WIDE_CELL = 160;
/** Of a column with `long`. */
const MAX_LONG_CELL = 1000;
const MIN_CUT = 12;
const MIN_WRAPPED = 24;
const GAP = '   ';

interface Widths {
  readonly all: readonly number[];
  /** Columns whose cells are cut to their width. */
  readonly cut: ReadonlySet<number>;
}

/** @throws Problem for an unknown form. */
export function outputForm(args: Args): OutputForm {
  const text = args.text('output') ?? 'table';
  const form = outputForms.find((one) => one === text);
  if (form) return form;
  throw usageProblem(`--output is ${quote(text)}; it must be one of ${outputForms.join(', ')}`);
}

/** Prints a list in parts: rows of one table, objects of one List, or names. */
export class Printer<T> {
  readonly #io: Output;
  readonly #form: OutputForm;
  readonly #presentation: Presentation<T>;
  readonly #stream: boolean;
  readonly #columns: readonly Column<T>[];
  readonly #objects: object[] = [];
  #widths: Widths | undefined;
  /** By column, of the cells that count for its width. */
  #longestCells: readonly number[] = [];
  #inBlocks = false;

  /** With `stream`, prints each item at once; JSON has one object on each line. */
  constructor(io: Output, form: OutputForm, presentation: Presentation<T>, { stream = false } = {}) {
    this.#io = io;
    this.#form = form;
    this.#presentation = presentation;
    this.#stream = stream;
    this.#columns = presentation.columns.filter(({ wide }) => !wide || form === 'wide');
  }

  /** The first part sets the widths of the columns; in a stream, longer cells widen them later. */
  add(items: readonly T[]): void {
    if (items.length === 0) return;
    const objects = (): object[] => items.map((item) => withoutManagedFields(this.#presentation.object(item)));
    if (this.#form === 'name')
      this.#io.print(items.map((item) => `${printable(this.#presentation.name(item))}\n`).join(''));
    else if (this.#form === 'table' || this.#form === 'wide') this.#printRows(items);
    else if (!this.#stream) this.#objects.push(...objects());
    else
      for (const object of objects())
        this.#io.print(this.#form === 'json' ? `${json(object, 0)}\n` : `---\n${yaml(object)}`);
  }

  /** Call once, after the last `add`: JSON and YAML print their List only here. */
  end(): void {
    if (this.#stream || (this.#form !== 'json' && this.#form !== 'yaml')) return;
    const list = { apiVersion: 'v1', kind: 'List', items: this.#objects };
    this.#io.print(this.#form === 'json' ? `${json(list)}\n` : yaml(list));
  }

  #printRows(items: readonly T[]): void {
    const max = this.#form === 'wide' ? MAX_WIDE_CELL : MAX_CELL;
    const rows = items.map((item) =>
      this.#columns.map(({ text, long }) => shorten(printable(text(item)), long ? MAX_LONG_CELL : max) || '-'),
    );
    const lines = this.#widths ? rows : [this.#columns.map(({ title }) => title), ...rows];
    const last = this.#columns.length - 1;
    const lineWidth =
      this.#form === 'table' ? (this.#io.columns ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const longestCells = this.#columns.map((_, index) =>
      Math.max(this.#longestCells[index] ?? 0, ...lines.map((row) => row[index]?.length ?? 0)),
    );
    if (!this.#widths || this.#stream) {
      this.#longestCells = longestCells;
      const fitted = this.#fitted(longestCells, lineWidth);
      this.#inBlocks = !fitted && this.#presentation.blocks === true;
      this.#widths = fitted ?? { all: longestCells, cut: new Set() };
    }
    if (this.#inBlocks) {
      const block = (item: T): string => fields(this.#columns.map(({ title, text }) => [title, text(item)]));
      this.#io.print(items.map((item) => `${block(item)}\n`).join(''));
      return;
    }
    const { all: widths, cut } = this.#widths;
    const lastStart = widths.slice(0, last).reduce((sum, width) => sum + width + GAP.length, 0);
    const lastWidth = lineWidth - lastStart;
    const lastCell = (text: string): string => {
      if (!this.#columns[last]?.long) return shorten(text, Math.max(MIN_CUT, lastWidth));
      return lastWidth < MIN_WRAPPED || text.length <= lastWidth
        ? text
        : wrap(text, lastWidth).join(`\n${' '.repeat(lastStart)}`);
    };
    const cell = (text: string, index: number): string => {
      const width = widths[index] ?? 0;
      if (index === last) return lastCell(text);
      return (cut.has(index) ? shorten(text, width) : text).padEnd(width);
    };
    this.#io.print(lines.map((row) => `${row.map(cell).join(GAP)}\n`).join(''));
  }

  /** Narrows the widest columns except the last; undefined if lines cannot fit. */
  #fitted(widths: readonly number[], lineWidth: number): Widths | undefined {
    const last = widths.length - 1;
    const minWidth = (index: number): number => {
      const width = widths[index] ?? 0;
      if (!this.#columns[index]?.long) return Math.min(width, MIN_CUT);
      return index === last ? Math.min(width, MIN_WRAPPED) : width;
    };
    const all = widths.map((width, index) => (index === last ? minWidth(index) : width));
    const gaps = last * GAP.length;
    const sum = (some: readonly number[]): number => some.reduce((total, width) => total + width, gaps);
    const cut = new Set<number>();
    if (sum(all.map((_, index) => minWidth(index))) > lineWidth) return undefined;
    while (sum(all) > lineWidth) {
      const [widest = 0] = [...all.keys()]
        .filter((index) => (all[index] ?? 0) > minWidth(index))
        .sort((a, b) => (all[b] ?? 0) - (all[a] ?? 0));
      all[widest] = (all[widest] ?? 0) - 1;
      cut.add(widest);
    }
    return { all, cut };
  }
}

/** Returns false, and prints nothing, for a table. */
export function printObject(io: Pick<Io, 'print'>, form: OutputForm, object: KubeObject): boolean {
  if (form === 'table' || form === 'wide') return false;
  const shown = withoutManagedFields(object);
  if (form === 'name') io.print(`${printable(fullName(object))}\n`);
  else io.print(form === 'json' ? `${json(shown)}\n` : yaml(shown));
  return true;
}

function withoutManagedFields(object: object): object {
  const { metadata } = object as Partial<KubeObject>;
  return metadata ? { ...object, metadata: { ...metadata, managedFields: undefined } } : object;
}

/** `JSON.stringify` does not escape these, but they change how a terminal shows text. */
const invisible = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** With every control and invisible character escaped. */
export const json = (value: unknown, indent = 2): string =>
  JSON.stringify(value, undefined, indent).replace(invisible, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** JSON, which is valid YAML, if the text would have a character of `invisible`. */
export function yaml(value: unknown): string {
  const text = dumpYaml(JSON.parse(JSON.stringify(value)));
  return /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/u.test(text) ? `${json(value)}\n` : text;
}

export type Field = readonly [label: string, value: string | readonly string[]];

/** One line for a text, one for each item of a list. Omits empty values. */
export function fields(entries: readonly Field[]): string {
  const shown = entries.filter(([, value]) => value.length > 0);
  const width = Math.max(...shown.map(([label]) => label.length)) + 2;
  return shown
    .map(([label, value]) => {
      const lines = (typeof value === 'string' ? [value] : value).map(printable);
      return `${`${label}:`.padEnd(width)}${lines.join(`\n${' '.repeat(width)}`)}\n`;
    })
    .join('');
}
