import { useState } from 'preact/hooks';
import { parseTime } from '../../../../kit/clock.ts';
import { run } from '../api.ts';
import { useApp } from '../app.ts';
import { useAction } from '../commands.tsx';
import { JournalBox, Verdict } from '../journal.tsx';
import { Listing } from '../listing.tsx';
import { isoOfLocal } from '../time.ts';
import { Button, type Columns, Time, Title, two } from '../ui.tsx';
import { type Entry, entriesOf, entryColumns } from './recordings.tsx';

/** Of `audit report`. Times are RFC 3339, or empty. */
type Grant = Readonly<Record<'who' | 'namespace' | 'request' | 'template' | 'pod' | 'why', string>> &
  Readonly<Record<'granted' | 'until' | 'ended' | 'end' | 'endedBy' | 'approvedBy' | 'review', string>>;

const time = (text: string) => text !== '' && <Time ms={parseTime(text) ?? Number.NaN} />;

const grantColumns: Columns<Grant> = {
  Granted: ({ granted }) => time(granted),
  Ended: ({ ended, end, endedBy }) => two(time(ended), end, endedBy && `by ${endedBy}`),
  Who: ({ who, request }) => two(who, request),
  Pod: ({ pod, namespace, template }) => two(pod, namespace, template),
  Why: ({ why }) => why,
  Approved: ({ approvedBy, review }) => two(approvedBy, review && `review: ${review}`),
};

export function Audit() {
  const { namespace } = useApp();
  const [days, setDays] = useState({ From: '', To: '' });
  const from = isoOfLocal(days.From && `${days.From}T00:00`);
  const to = isoOfLocal(days.To && `${days.To}T24:00`) || 'Z';
  const isIn = (begin: string, end: string): boolean => end >= from && begin < to;
  return (
    <>
      <Title>Audit</Title>
      <JournalBox
        view={(serverNamespace) => (
          <>
            <Verify namespace={serverNamespace} />
            <div class="row">
              {(['From', 'To'] as const).map((name) => (
                <label key={name}>
                  {name}{' '}
                  <input
                    type="date"
                    onChange={({ currentTarget }) => setDays({ ...days, [name]: currentTarget.value })}
                  />
                </label>
              ))}
            </div>
            <h2>Who entered which pod</h2>
            <Listing<Entry>
              command={{ command: 'who', namespace }}
              caption="Entries, newest first"
              columns={entryColumns}
              rowsOf={(items) => entriesOf(items).filter(({ time: at }) => isIn(at, at))}
            />
            <h2>Who had access to what</h2>
            <Listing<Grant>
              command={{ command: 'audit report', namespace }}
              caption="Grants, newest first"
              columns={grantColumns}
              rowsOf={(items) =>
                items.filter(({ granted, ended, until }) => isIn(granted, ended || until)).toReversed()
              }
            />
          </>
        )}
      />
    </>
  );
}

function Verify({ namespace }: { readonly namespace: string }) {
  const [read, start] = useAction();
  return (
    <>
      <h2>Is the journal unchanged?</h2>
      <Button disabled={read.busy} onClick={() => start(run({ command: 'audit verify', namespace }))}>
        {read.busy ? 'Verifying …' : 'Verify'}
      </Button>
      <Verdict of={read} />
    </>
  );
}
