import { useState } from 'preact/hooks';
import { useApp } from '../app.ts';
import { type Component, graphOf } from '../graph.ts';
import { Listing } from '../listing.tsx';
import { Button, Chip, type Columns, Title, type Tone, two } from '../ui.tsx';
import { type Conditioned, conditionColumns } from './bindings.tsx';

type Entry = Conditioned & Readonly<{ spec: Readonly<{ mode?: string; suspend?: boolean }> }>;

export function Inventory() {
  const app = useApp();
  const [chosen, choose] = useState<Entry['metadata']>();
  const columns: Columns<Entry> = {
    Entry: ({ metadata, spec }) => two(metadata.name, metadata.namespace, spec.mode, spec.suspend && 'suspended'),
    ...conditionColumns,
    Components: ({ metadata }) => (
      <Button onClick={() => choose(metadata)} aria-label={`Show components of ${metadata.name}`}>
        Show
      </Button>
    ),
  };
  const { name = '', namespace } = chosen ?? {};
  return (
    <>
      <Title>Inventory</Title>
      <Listing
        command={{ command: 'inventory status', namespace: app.namespace }}
        caption="Clusters"
        columns={columns}
      />
      {chosen && (
        <section key={`${namespace}/${name}`}>
          <h2>Components of {name}</h2>
          <Listing<State>
            command={{ command: 'inventory why', namespace, args: [name] }}
            caption="An arrow of the picture leads to a component that reads what another writes"
            columns={stateColumns}
            picture={(states) => <Picture states={states} />}
          />
        </section>
      )}
    </>
  );
}

/** Of `inventory why`. */
type State = Component & Readonly<Record<'component' | 'state' | 'why' | 'lastRun' | 'next', string>>;

const tones: Readonly<Record<string, Tone>> = {
  Done: 'good',
  NotReady: 'wait',
  Progressing: 'wait',
  Retrying: 'warn',
  Deleting: 'warn',
  Failed: 'bad',
};
const toneOf = ({ state }: State): Tone => tones[state] ?? 'off';

const stateColumns: Columns<State> = {
  Component: ({ component }) => component,
  State: (one) => two(<Chip tone={toneOf(one)}>{one.state}</Chip>, one.why),
  Runs: ({ lastRun, next }) => two(lastRun && `last: ${lastRun}`, next && `next: ${next}`),
  Writes: ({ reads, writes }) => two(writes.join(', '), reads[0] && `reads: ${reads.join(', ')}`),
};

/** Px: of a box, and from one to the next. */
const [WIDTH, HEIGHT, RIGHT, DOWN] = [170, 48, 230, 64];

function Picture({ states }: { readonly states: readonly State[] }) {
  const { edges, places } = graphOf(states);
  const width = (1 + Math.max(...places.map(({ column }) => column))) * RIGHT;
  const height = (1 + Math.max(...places.map(({ row }) => row))) * DOWN;
  const cornerOf = (at: number) => [(places[at]?.column ?? 0) * RIGHT + 1, (places[at]?.row ?? 0) * DOWN + 1] as const;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <section class="graph" aria-label="Picture" tabIndex={0}>
      <svg width={width} height={height} role="img" aria-label="The column Writes as a graph">
        <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0 8 4 0 8" />
        </marker>
        {edges.map(({ from, to }) => {
          const [[x, y], [right, down]] = [cornerOf(from), cornerOf(to)];
          const dip = right - x === RIGHT ? 0 : DOWN;
          const bend = `C${x + WIDTH + 40} ${y + dip} ${right - 40} ${down + dip} ${right} ${down}`;
          const d = `M${x + WIDTH} ${y}${bend}`;
          return <path key={d} d={d} transform={`translate(0 ${HEIGHT / 2})`} marker-end="url(#arrow)" />;
        })}
        {states.map((one, at) => (
          <g key={one.component} transform={`translate(${cornerOf(at)})`}>
            <rect width={WIDTH} height={HEIGHT} rx="6" style={{ stroke: `var(--${toneOf(one)})` }} />
            <text x="10" y="20">
              {one.component}
            </text>
            <text x="10" y="38">
              {one.state}
            </text>
          </g>
        ))}
      </svg>
    </section>
  );
}
