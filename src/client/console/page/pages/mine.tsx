import type { RequestRow } from '../../wire.ts';
import { RequestActions, textOfRow } from '../actions.tsx';
import { requestPath, useApp } from '../app.ts';
import { Code, type Columns, Countdown, Go, StateChip, Table, Time, Title, useFilter } from '../ui.tsx';
import { Marks } from './decide.tsx';

/** Requests that have not ended get a card; beyond these, a row. */
const CARDS = 20;

export function Mine() {
  const { mine, live } = useApp();
  const [found, filter] = useFilter(mine, textOfRow);
  const cards = found.slice(0, CARDS).filter(({ final }) => !final);
  return (
    <>
      <div class="row spread">
        <Title>Mine</Title>
        <Go to="/ask" class="button main">
          Ask for access
        </Go>
      </div>
      {mine.length > 0 && filter}
      {cards.map((row) => (
        <Card key={row.key} row={row} />
      ))}
      {(cards.length === 0 || found.length > cards.length) && (
        <Table
          caption="Earlier requests"
          columns={columns}
          rows={found.slice(cards.length)}
          keyOf={({ key }) => key}
          empty={live.synced ? 'No requests of yours.' : 'Reading the requests …'}
        />
      )}
    </>
  );
}

function Card({ row }: { readonly row: RequestRow }) {
  return (
    <article class="card">
      <h2>
        <Go to={requestPath(row.key)}>{row.template}</Go> <StateChip state={row.state} />
        <Marks row={row} />
        <When row={row} />
      </h2>
      <p>{row.reason}</p>
      {row.why !== '' && <p class="quiet">{row.why}</p>}
      {row.use !== '' && <Code text={row.use} />}
      <RequestActions row={row} />
      <p class="quiet">
        {row.name} in {row.namespace}, asked for on <Time ms={row.createdMs} />
      </p>
    </article>
  );
}

/** How long access still lasts, or when it starts or ended. */
export function When({ row, spoken = true }: { readonly row: RequestRow; readonly spoken?: boolean }) {
  const { final, endsMs, startsMs, state } = row;
  if (endsMs !== undefined && !final) return <Countdown endsMs={endsMs} spoken={spoken} />;
  if (endsMs !== undefined) return <Time ms={endsMs} />;
  if (startsMs === undefined || state !== 'Waiting') return null;
  return (
    <span>
      from <Time ms={startsMs} />
    </span>
  );
}

const columns: Columns<RequestRow> = {
  Request: (row) => <Go to={requestPath(row.key)}>{row.name}</Go>,
  Template: (row) => row.template,
  State: (row) => <StateChip state={row.state} />,
  Until: (row) => <When row={row} spoken={false} />,
  Why: (row) => row.why,
  Again: (row) => <Go to={`/ask/${row.namespace}/${row.type}/${row.template}`}>Ask again</Go>,
};
