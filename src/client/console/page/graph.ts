import { type JsonPointer, overlap } from '../../../kit/json-pointer.ts';

export interface Component {
  readonly component: string;
  /** JSON pointers. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** Of two components: `to` reads what `from` writes. */
export interface Edge {
  readonly from: string;
  readonly to: string;
}

export const edgesOf = (components: readonly Component[]): readonly Edge[] =>
  components.flatMap(({ component: from, writes }) =>
    components
      .filter(
        ({ component, reads }) => component !== from && writes.some((one) => reads.some((two) => touch(one, two))),
      )
      .map(({ component: to }) => ({ from, to })),
  );

const touch = (a: string, b: string): boolean => overlap(a as JsonPointer, b as JsonPointer);

/** Each is right of those that it reads from, except in a cycle. */
export function columnsOf(components: readonly Component[], edges: readonly Edge[]): ReadonlyMap<string, number> {
  const columns = new Map<string, number>();
  const place = (name: string, path: readonly string[]): number => {
    const sources = edges.filter(({ from, to }) => to === name && !path.includes(from)).map(({ from }) => from);
    const column = Math.max(-1, ...sources.map((from) => columns.get(from) ?? place(from, [...path, from]))) + 1;
    columns.set(name, column);
    return column;
  };
  for (const { component } of components) if (!columns.has(component)) place(component, [component]);
  return columns;
}
