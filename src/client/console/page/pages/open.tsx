import { useMemo } from 'preact/hooks';
import type { RequestRow, SessionRow } from '../../wire.ts';
import { RequestActions, textOfRow } from '../actions.tsx';
import { requestPath, useApp } from '../app.ts';
import { two } from '../listing.tsx';
import type { Live } from '../live.ts';
import { EndSession, PlayerLink } from '../session.tsx';
import { localTime, useNow } from '../time.ts';
import { type Column, Countdown, Go, StateChip, Table, Time, Title, useFilter } from '../ui.tsx';
import '../drawings.css';

interface Grant {
  readonly row: RequestRow;
  readonly sessions: readonly SessionRow[];
}

const textOf = ({ row, sessions }: Grant): string => [textOfRow(row), ...sessions.map(({ user }) => user)].join(' ');
const startOf = ({ startsMs, createdMs }: RequestRow): number => startsMs ?? createdMs;
const isOpen = ({ state }: RequestRow): boolean => state === 'Open' || state === 'Ending';

/** `others`: sessions of no grant that this user sees. */
function openIn({ requests, sessions }: Live) {
  const byRequest = Map.groupBy(sessions.values(), ({ request }) => request);
  const grants = [...requests.values()]
    .filter(isOpen)
    .map((row) => ({ row, sessions: byRequest.get(row.key) ?? [] }))
    .toSorted((a, b) => (a.row.endsMs ?? 0) - (b.row.endsMs ?? 0));
  for (const { row } of grants) byRequest.delete(row.key);
  return { grants, others: [...byRequest.values()].flat() };
}

export function Open() {
  const { live } = useApp();
  const { grants, others } = useMemo(() => openIn(live), [live.requests, live.sessions]);
  const [found, filter] = useFilter(grants, textOf);
  return (
    <>
      <Title>Open now</Title>
      {grants.length > 0 && filter}
      {found.length > 0 && <Timeline grants={found.slice(0, SHOWN)} />}
      <Table
        caption="Who has access"
        columns={columns}
        rows={found}
        keyOf={({ row }) => row.key}
        empty={live.synced ? 'No one has access here.' : 'Reading the requests …'}
      />
      {others.length > 0 && (
        <Table
          caption="Sessions whose access has ended, or that you may not see"
          columns={sessionColumns}
          rows={others}
          keyOf={({ key }) => key}
          empty=""
        />
      )}
    </>
  );
}

const columns: readonly Column<Grant>[] = [
  {
    title: 'Who',
    cell: ({ row }) =>
      two(<Go to={requestPath(row.key)}>{row.requester}</Go>, row.emergency && 'emergency', ...row.approvals),
  },
  { title: 'Pod', cell: ({ row }) => two(row.pod || row.template, row.namespace) },
  {
    title: 'Until',
    cell: ({ row }) => two(row.endsMs && <Countdown endsMs={row.endsMs} />, `since ${localTime(startOf(row))}`),
  },
  {
    title: 'Sessions',
    cell: ({ sessions }) => (
      <div class="list">
        {sessions.map((one) => (
          <Session key={one.key} session={one} />
        ))}
      </div>
    ),
  },
  {
    title: 'State',
    cell: ({ row }) => (
      <>
        {two(<StateChip state={row.state} />, row.why)}
        <RequestActions row={row} />
      </>
    ),
  },
];

const sessionColumns: readonly Column<SessionRow>[] = [
  { title: 'Pod', cell: ({ pod, namespace }) => two(pod, namespace) },
  { title: 'Session', cell: (session) => <Session session={session} /> },
];

function Session({ session: { namespace, name, stream, user, pod, startedMs } }: { readonly session: SessionRow }) {
  return (
    <div class="actions">
      <span>
        {user}: {stream} since <Time ms={startedMs} />
      </span>
      {stream !== 'portforward' && (
        <PlayerLink from="sessions" namespace={namespace} name={name} about={`${user}: ${stream} in ${pod}`} />
      )}
      <EndSession namespace={namespace} name={name} />
    </div>
  );
}

/** Grants of the timeline. The table has all. */
const SHOWN = 30;
/** Of a grant, px: its name, and below it, its bar. */
const ROW = 40;

/** From the start of the first grant to the end of the last one. The table says the same. */
function Timeline({ grants }: { readonly grants: readonly Grant[] }) {
  const now = useNow(10_000);
  const endOf = ({ endsMs = now }: RequestRow): number => Math.max(now, endsMs);
  const from = Math.min(now, ...grants.map(({ row }) => startOf(row)));
  const to = Math.max(now + 60_000, ...grants.map(({ row }) => endOf(row)));
  const at = (ms: number): string => `${((ms - from) / (to - from)) * 100}%`;
  const height = grants.length * ROW;
  return (
    <svg class="timeline" width="100%" height={height + 24} role="img" aria-label="The table as a timeline">
      {grants.map(({ row, sessions }, index) => (
        <g key={row.key} transform={`translate(0 ${index * ROW})`}>
          <text y="14">
            {row.requester}: {row.pod || row.template}
          </text>
          <rect
            class={row.state}
            x={at(startOf(row))}
            y="20"
            width={at(from + endOf(row) - startOf(row))}
            height="12"
          />
          {sessions.map(({ key, startedMs }) => (
            <rect key={key} x={at(startedMs)} y="16" width="3" height="20" />
          ))}
        </g>
      ))}
      <line x1={at(now)} x2={at(now)} y2={height + 4} />
      <text y={height + 20}>{localTime(from)}</text>
      <text x={at(now)} y={height + 20} text-anchor="middle">
        now
      </text>
      <text x="100%" y={height + 20} text-anchor="end">
        {localTime(to)}
      </text>
    </svg>
  );
}
