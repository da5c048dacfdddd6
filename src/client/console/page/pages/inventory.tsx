import { useState } from 'preact/hooks';
import { useApp } from '../app.ts';
import { type Component, columnsOf, edgesOf } from '../graph.ts';
import { Listing, two } from '../listing.tsx';
import { Chip, type Column, Title, type Tone } from '../ui.tsx';
import { type Conditioned, conditionColumns } from './bindings.tsx';

interface Entry extends Conditioned {
  readonly spec: { readonly mode?: string; readonly suspend?: boolean };
}

const keyOf = ({ metadata }: Entry): string => `${metadata.namespace}/${metadata.name}`;

export function Inventory() {
  const { namespace } = useApp();
  const [chosen, choose] = useState<Entry>();
  const columns: readonly Column<Entry>[] = [
    {
      title: 'Entry',
      cell: ({ metadata, spec }) => two(metadata.name, metadata.namespace, spec.mode, spec.suspend && 'suspended'),
    },
    ...conditionColumns,
    {
      title: 'Components',
      cell: (entry) => (
        <button type="button" onClick={() => choose(entry)} aria-label={`Show components of ${entry.metadata.name}`}>
          Show
        </button>
      ),
    },
  ];
  return (
    <>
      <Title>Inventory</Title>
      <Listing
        command={{ command: 'inventory status', namespace }}
        caption="Clusters"
        columns={columns}
        keyOf={keyOf}
        empty="No entries."
      />
      {chosen && (
        <section key={keyOf(chosen)}>
          <h2>Components of {chosen.metadata.name}</h2>
          <Listing<State>
            command={{ command: 'inventory why', namespace: chosen.metadata.namespace, args: [chosen.metadata.name] }}
            caption="An arrow of the picture leads to a component that reads what another writes"
            columns={stateColumns}
            keyOf={({ component }) => component}
            empty="No components."
            picture={(states) => <Picture states={states} />}
          />
        </section>
      )}
    </>
  );
}

/** Of `inventory why`. */
type State = Component & Readonly<Record<'state' | 'why' | 'lastRun' | 'next', string>>;

const tones: Readonly<Record<string, Tone>> = {
  Done: 'good',
  NotReady: 'wait',
  Progressing: 'wait',
  Retrying: 'warn',
  Deleting: 'warn',
  Failed: 'bad',
};
const toneOf = ({ state }: State): Tone => tones[state] ?? 'off';

const stateColumns: readonly Column<State>[] = [
  { title: 'Component', cell: ({ component }) => component },
  { title: 'State', cell: (one) => two(<Chip tone={toneOf(one)}>{one.state}</Chip>, one.why) },
  { title: 'Runs', cell: ({ lastRun, next }) => two(lastRun && `last: ${lastRun}`, next && `next: ${next}`) },
  {
    title: 'Writes',
    cell: ({ reads, writes }) => two(writes.join(', '), reads.length > 0 && `reads: ${reads.join(', ')}`),
  },
];

/** Px: of a box, and from one to the next. */
const [WIDTH, HEIGHT, RIGHT, DOWN] = [170, 48, 230, 64];

function Picture({ states }: { readonly states: readonly State[] }) {
  const edges = edgesOf(states);
  const columns = columnsOf(states, edges);
  const filled: number[] = [];
  const places = new Map(
    states.map(({ component }) => {
      const column = columns.get(component) ?? 0;
      const row = filled[column] ?? 0;
      filled[column] = row + 1;
      return [component, { x: column * RIGHT + 1, y: row * DOWN + 1 }];
    }),
  );
  const placeOf = (name: string): { x: number; y: number } => places.get(name) ?? { x: 0, y: 0 };
  const size = { width: filled.length * RIGHT, height: Math.max(0, ...filled) * DOWN };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="graph" aria-label="Picture" tabIndex={0}>
      <svg {...size} role="img" aria-label="The column Writes as a graph">
        <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0 8 4 0 8" />
        </marker>
        {edges.map(({ from, to }) => {
          const [a, b] = [placeOf(from), placeOf(to)];
          const [x, y, right, down] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
          const d = `M${x} ${y}C${x + 40} ${y} ${right - 40} ${down} ${right} ${down}`;
          return <path key={d} d={d} marker-end="url(#arrow)" />;
        })}
        {states.map((one) => {
          const { x, y } = placeOf(one.component);
          return (
            <g key={one.component}>
              <rect x={x} y={y} width={WIDTH} height={HEIGHT} rx="6" style={{ stroke: `var(--${toneOf(one)})` }} />
              <text x={x + 10} y={y + 20}>
                {one.component}
              </text>
              <text x={x + 10} y={y + 38}>
                {one.state}
              </text>
            </g>
          );
        })}
      </svg>
    </section>
  );
}
