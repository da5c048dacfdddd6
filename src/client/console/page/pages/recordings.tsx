import { useState } from 'preact/hooks';
import { parseTime } from '../../../../kit/clock.ts';
import { paths, type RunResult } from '../../wire.ts';
import { get } from '../api.ts';
import { useApp } from '../app.ts';
import { JournalBox, Verdict } from '../journal.tsx';
import { Listing, two } from '../listing.tsx';
import { PlayerLink, type SessionName } from '../session.tsx';
import { Alert, type Column, Dialog, Time, Title } from '../ui.tsx';

/** An entry into a pod, of `who`; its grants have another kind. */
export interface Entry extends Readonly<Record<'kind' | 'time' | 'event' | 'verdict', string>> {
  readonly who: { readonly user: string };
  readonly what: { readonly namespace: string; readonly name: string };
  readonly request?: string;
  readonly container?: string;
  readonly session?: string;
  readonly stream?: string;
}

export const entriesOf = (items: readonly Entry[]): readonly Entry[] =>
  items.filter(({ kind }) => kind === 'AuditRecord').toSorted((a, b) => (a.time < b.time ? 1 : -1));

export const entryColumns: readonly Column<Entry>[] = [
  { title: 'Entered', cell: ({ time }) => <Time ms={parseTime(time) ?? 0} /> },
  { title: 'Who', cell: ({ who, request }) => two(who.user, request) },
  { title: 'Pod', cell: ({ what, container }) => two(what.name, what.namespace, container) },
  { title: 'How', cell: ({ stream, event, verdict }) => `${stream ?? event} ${verdict}` },
];

const columns: readonly Column<Entry>[] = [
  ...entryColumns,
  {
    title: 'Recording',
    cell: ({ who, what, session = '' }) => (
      <Actions namespace={what.namespace} name={session} about={`${who.user} in ${what.name}`} />
    ),
  },
];

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
  const [found, setFound] = useState<{ readonly result?: RunResult; readonly error?: string }>();
  if (live.sessions.has(`${namespace}/${name}`)) return 'still open';
  const verify = (): void => {
    setFound({});
    get<RunResult>(paths.verdict, { namespace, name }).then(
      (result) => setFound({ result }),
      (error: Error) => setFound({ error: error.message }),
    );
  };
  return (
    <div class="actions">
      <PlayerLink from="recordings" namespace={namespace} name={name} about={about} />
      <button type="button" onClick={verify}>
        Verify
      </button>
      {found && (
        <Dialog title="Is this recording unchanged?" onClose={() => setFound(undefined)}>
          {found.result && <Verdict result={found.result} />}
          {found.error !== undefined && <Alert>{found.error}</Alert>}
          <p role="status">{found.result || found.error ? '' : 'Reading the recording …'}</p>
          <button type="button" onClick={(event) => event.currentTarget.closest('dialog')?.close()}>
            Close
          </button>
        </Dialog>
      )}
    </div>
  );
}
