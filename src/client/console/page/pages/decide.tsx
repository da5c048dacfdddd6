import type { RequestRow } from '../../wire.ts';
import { textOfRow } from '../actions.tsx';
import { requestPath, useApp } from '../app.ts';
import { Chip, type Columns, Countdown, Go, Out, Table, Title, two, useFilter } from '../ui.tsx';

export function Decide() {
  const { toDecide, live } = useApp();
  const [found, filter] = useFilter(toDecide, textOfRow);
  return (
    <>
      <Title>To decide</Title>
      {toDecide.length > 0 && filter}
      <Table
        caption="Requests that wait for you"
        columns={columns}
        rows={found}
        keyOf={({ key }) => key}
        empty={live.synced ? 'No request waits for you.' : 'Reading the requests …'}
      />
    </>
  );
}

/** What is not usual about a request. */
export const Marks = ({ row: { emergency, about } }: { readonly row: RequestRow }) => (
  <>
    {emergency && <Chip tone="bad">Emergency</Chip>}{' '}
    {about !== '' && about !== 'Access' && <Chip tone="wait">{about}</Chip>}
  </>
);

const columns: Columns<RequestRow> = {
  Who: (row) => row.requester,
  'For what': (row) =>
    two([<Go to={requestPath(row.key)}>{row.template}</Go>, ' ', <Marks row={row} />], row.namespace),
  Why: (row) => (
    <>
      <p>{row.reason}</p>
      <Out href={row.link} />
    </>
  ),
  'How long': (row) => row.duration,
  'Decide within': (row) => row.decideByMs !== undefined && <Countdown endsMs={row.decideByMs} />,
  Decision: (row) => (
    <Go to={requestPath(row.key)} class="button main">
      {row.choice.startsWith('approve') ? 'Decide' : 'Look'}
    </Go>
  ),
};
