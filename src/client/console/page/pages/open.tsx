import { useMemo } from 'preact/hooks';
import type { RequestRow, SessionRow } from '../../wire.ts';
import { EndSession, PlayerLink, RequestActions, textOfRow } from '../actions.tsx';
import { requestPath, useApp } from '../app.ts';
import type { Live } from '../live.ts';
import { localTime, useNow } from '../time.ts';
import { type Columns, Countdown, Go, StateChip, Table, Title, two, useFilter } from '../ui.tsx';
import '../drawings.css';

const startOf = ({ startsMs, createdMs }: RequestRow): number => startsMs ?? createdMs;

function openIn({ requests }: Live): readonly RequestRow[] {
  const open = [...requests.values()].filter(({ state }) => state === 'Open' || state === 'Ending');
  return open.toSorted((a, b) => (a.endsMs ?? 0) - (b.endsMs ?? 0));
}

export function Open() {
  const { live } = useApp();
  const grants = useMemo(() => openIn(live), [live.requests]);
  const [found, filter] = useFilter(grants, textOfRow);
  const reading = live.synced ? undefined : 'Reading …';
  return (
    <>
      <Title>Open now</Title>
      {grants.length > 0 && filter}
      {found.length > 0 && <Timeline grants={found.slice(0, SHOWN)} sessions={[...live.sessions.values()]} />}
      <Table
        caption="Who has access"
        columns={columns}
        rows={found}
        keyOf={({ key }) => key}
        empty={reading ?? 'No one has access here.'}
      />
      <Table
        caption="Who is connected"
        columns={sessionColumns}
        rows={[...live.sessions.values()]}
        keyOf={({ key }) => key}
        empty={reading ?? 'No one is connected here through the gateway, as far as you may see.'}
      />
    </>
  );
}

const columns: Columns<RequestRow> = {
  Who: (row) => two(<Go to={requestPath(row.key)}>{row.requester}</Go>, row.emergency && 'emergency', ...row.approvals),
  Pod: ({ pod, template, namespace }) => two(pod || template, namespace),
  Until: (row) => two(row.endsMs && <Countdown endsMs={row.endsMs} />, `since ${localTime(startOf(row))}`),
  State: ({ state, why }) => two(<StateChip state={state} />, why),
  Actions: (row) => <RequestActions row={row} />,
};

const sessionColumns: Columns<SessionRow> = {
  Who: ({ user, request }) => <Go to={requestPath(request)}>{user}</Go>,
  Pod: ({ pod, namespace, container }) => two(pod, namespace, container),
  Session: ({ stream, startedMs }) => two(stream, `since ${localTime(startedMs)}`),
  Actions: ({ namespace, name, stream, user, pod }) => (
    <div class="actions">
      {stream !== 'portforward' && (
        <PlayerLink from="sessions" namespace={namespace} name={name} about={`${user}: ${stream} in ${pod}`} />
      )}
      <EndSession namespace={namespace} name={name} />
    </div>
  ),
};

/** Grants of the timeline. The table has all. */
const SHOWN = 30;
/** Of a grant, px: its name, and below it, its bar. */
const ROW = 40;

/** From the start of the first grant to the end of the last one. The table says the same. */
function Timeline({ grants, sessions }: Readonly<{ grants: readonly RequestRow[]; sessions: readonly SessionRow[] }>) {
  const now = useNow(10_000);
  const endOf = ({ endsMs = now }: RequestRow): number => Math.max(now, endsMs);
  const from = Math.min(now, ...grants.map(startOf));
  const to = Math.max(now + 60_000, ...grants.map(endOf));
  const at = (ms: number): string => `${((ms - from) / (to - from)) * 100}%`;
  const height = grants.length * ROW;
  const share = (now - from) / (to - from);
  return (
    <svg class="timeline" width="100%" height={height + 24} role="img" aria-label="The table as a timeline">
      {grants.map((row, index) => (
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
          {sessions
            .filter(({ request }) => request === row.key)
            .map(({ key, startedMs }) => (
              <rect key={key} x={at(startedMs)} y="16" width="3" height="20" />
            ))}
        </g>
      ))}
      <line x1={at(now)} x2={at(now)} y2={height + 4} />
      {share > 0.25 && <text y={height + 20}>{localTime(from)}</text>}
      <text x={at(now)} y={height + 20} text-anchor={share > 0.25 ? 'middle' : 'start'}>
        now
      </text>
      <text x="100%" y={height + 20} text-anchor="end">
        {localTime(to)}
      </text>
    </svg>
  );
}
