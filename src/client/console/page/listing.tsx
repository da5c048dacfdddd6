import type { ComponentChildren } from 'preact';
import type { RunCall } from '../wire.ts';
import { Failed, itemsOf, Line, useRun } from './commands.tsx';
import { type Columns, Table, useFilter } from './ui.tsx';

/** Of each row, once: a journal has many. */
const texts = new WeakMap<object, string>();

function textOf(row: object): string {
  const text = texts.get(row) ?? JSON.stringify(row);
  texts.set(row, text);
  return text;
}

interface ListingProps<T> {
  /** Without a namespace, or with undefined: of all. */
  readonly command: { readonly [K in keyof RunCall]: RunCall[K] | undefined };
  readonly caption: string;
  readonly columns: Columns<T>;
  /** Which items it shows, in which order. Default: all. */
  readonly rowsOf?: (items: readonly T[]) => readonly T[];
  /** Above the table. */
  readonly picture?: (rows: readonly T[]) => ComponentChildren;
}

/** What a command lists, with a filter, its messages, and its line. */
export function Listing<T extends object>({ command, rowsOf = (items) => items, picture, ...table }: ListingProps<T>) {
  const read = useRun(command as RunCall);
  const { result, busy } = read;
  const items = itemsOf<T>(result);
  const [found, filter] = useFilter(rowsOf(items ?? []), textOf);
  return (
    <>
      {busy && <p role="status">Reading …</p>}
      {items && filter}
      {found.length > 0 && picture?.(found)}
      {items && <Table {...table} rows={found} keyOf={textOf} empty="Nothing found." />}
      <Failed of={read} />
      {result?.exitCode === 0 && <Line result={result} />}
    </>
  );
}
