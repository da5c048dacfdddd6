import { useState } from 'preact/hooks';
import { parseTime } from '../../../../kit/clock.ts';
import { paths, type RunResult } from '../../wire.ts';
import { PlayerLink, type SessionName } from '../actions.tsx';
import { read } from '../api.ts';
import { useApp } from '../app.ts';
import { useRead } from '../commands.tsx';
import { JournalBox, Verdict } from '../journal.tsx';
import { Listing } from '../listing.tsx';
import { Button, CloseButton, type Columns, Dialog, Time, Title, two } from '../ui.tsx';

/** An entry into a pod, of `who`; its grants have another kind. */
export interface Entry
  extends Readonly<Record<'kind' | 'time' | 'event' | 'verdict', string>>,
    Readonly<Partial<Record<'request' | 'container' | 'session' | 'stream', string>>> {
  readonly who: { readonly user: string };
  readonly what: SessionName;
}

export const entriesOf = (items: readonly Entry[]): readonly Entry[] =>
  items.filter(({ kind }) => kind === 'AuditRecord').toSorted((a, b) => (a.time < b.time ? 1 : -1));

export const entryColumns: Columns<Entry> = {
  Entered: ({ time }) => <Time ms={parseTime(time) ?? 0} />,
  Who: ({ who, request }) => two(who.user, request),
  Pod: ({ what, container }) => two(what.name, what.namespace, container),
  How: ({ stream, event, verdict }) => `${stream ?? event} ${verdict}`,
};

const columns: Columns<Entry> = {
  ...entryColumns,
  Recording: ({ who, what, session = '' }) => (
    <Actions namespace={what.namespace} name={session} about={`${who.user} in ${what.name}`} />
  ),
};

/** Of streams that can have a recording. */
const sessionsOf = (items: readonly Entry[]): readonly Entry[] =>
  entriesOf(items).filter(({ session, stream }) => session !== undefined && stream !== 'portforward');

export function Recordings() {
  const { namespace } = useApp();
  return (
    <>
      <Title>Recordings</Title>
      <JournalBox
        view={() => (
          <Listing
            command={{ command: 'who', namespace }}
            caption="Sessions, newest first. Their templates say whether they are recorded"
            columns={columns}
            rowsOf={sessionsOf}
          />
        )}
      />
    </>
  );
}

function Actions({ namespace, name, about }: SessionName & { readonly about: string }) {
  const { live } = useApp();
  const [asks, setAsks] = useState(false);
  if (live.sessions.has(`${namespace}/${name}`)) return 'still open';
  return (
    <div class="actions">
      <PlayerLink from="recordings" namespace={namespace} name={name} about={about} />
      <Button onClick={() => setAsks(true)}>Verify</Button>
      {asks && (
        <Dialog title="Is this recording unchanged?" onClose={() => setAsks(false)}>
          <Found query={{ namespace, name }} />
          <CloseButton>Close</CloseButton>
        </Dialog>
      )}
    </div>
  );
}

function Found({ query }: { readonly query: SessionName }) {
  const found = useRead(() => read<RunResult>(paths.verdict, { query }), []);
  return (
    <>
      <Verdict of={found} />
      <p role="status">{found.busy && 'Reading the recording …'}</p>
    </>
  );
}
