import { type JsonPointer, overlap } from '../../../kit/json-pointer.ts';

export type Component = Readonly<Record<'reads' | 'writes', readonly JsonPointer[]>>;

/**
 * What components read of others, by their indexes. Each is in a column right of those that it reads
 * from, except in a cycle.
 */
export function graphOf(components: readonly Component[]) {
  const isRead = (from: Component, { reads }: Component): boolean =>
    from.writes.some((written) => reads.some((read) => overlap(written, read)));
  const edges = components.flatMap((one, from) =>
    components.flatMap((other, to) => (from !== to && isRead(one, other) ? [{ from, to }] : [])),
  );
  const columns: number[] = [];
  const columnOf = (at: number, path: readonly number[]): number => {
    const sources = edges.filter(({ from, to }) => to === at && !path.includes(from));
    columns[at] ??= Math.max(-1, ...sources.map(({ from }) => columnOf(from, [...path, at]))) + 1;
    return columns[at];
  };
  const places = components.map((_, at) => ({ column: columnOf(at, [at]), row: 0 }));
  return { edges, places: places.map((one, at) => ({ ...one, row: rowOf(columns, at) })) };
}

const rowOf = (columns: readonly number[], at: number): number =>
  columns.slice(0, at).filter((column) => column === columns[at]).length;
