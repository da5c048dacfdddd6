import { useState } from 'preact/hooks';
import { parseTime } from '../../../../kit/clock.ts';
import { run } from '../api.ts';
import { useApp } from '../app.ts';
import { Failed, useAction } from '../commands.tsx';
import { JournalBox, Verdict } from '../journal.tsx';
import { Listing } from '../listing.tsx';
import { isoOfLocal, nowMs } from '../time.ts';
import { Button, type Columns, Time, Title, two } from '../ui.tsx';
import { type Entry, entriesOf, entryColumns } from './recordings.tsx';

/** Of `audit report`. Times are RFC 3339, or empty. */
type Grant = Readonly<
  Record<
    | ('who' | 'namespace' | 'request' | 'template' | 'pod' | 'why' | 'review')
    | ('granted' | 'until' | 'ended' | 'end' | 'approvedBy' | 'endedBy'),
    string
  >
>;

const msOf = (text: string): number => parseTime(text) ?? Number.NaN;
const time = (text: string) => text !== '' && <Time ms={msOf(text)} />;

const grantColumns: Columns<Grant> = {
  Granted: ({ granted }) => time(granted),
  Ended: ({ ended, end, endedBy }) => two(time(ended), end, endedBy && `by ${endedBy}`),
  Who: ({ who, request }) => two(who, request),
  Pod: ({ pod, namespace, template }) => two(pod, namespace, template),
  Why: ({ why }) => why,
  Approved: ({ approvedBy, review }) => two(approvedBy, review && `review: ${review}`),
};

const DAY_MS = 86_400_000;

export function Audit() {
  const { namespace } = useApp();
  const [days, setDays] = useState({ From: '', To: '' });
  // NaN without a day: then each comparison is false.
  const [from, to] = [days.From, days.To].map((day) => msOf(day && isoOfLocal(`${day}T00:00`))) as [number, number];
  const isIn = (begin: string, end: string): boolean => !(msOf(end) < from || msOf(begin) >= to + DAY_MS);
  const options = {
    namespace,
    flags: from < nowMs() ? { since: `${Math.ceil((nowMs() - from) / DAY_MS)}d` } : undefined,
  };
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
                    value={days[name]}
                    onChange={({ currentTarget }) => setDays({ ...days, [name]: currentTarget.value })}
                  />
                </label>
              ))}
            </div>
            <h2>Who entered which pod</h2>
            <Listing<Entry>
              command={{ command: 'who', ...options }}
              caption="Entries, newest first"
              columns={entryColumns}
              rowsOf={(items) => entriesOf(items).filter(({ time: at }) => isIn(at, at))}
            />
            <h2>Who had access to what</h2>
            <Listing<Grant>
              command={{ command: 'audit report', ...options }}
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
  const { busy, result } = read;
  return (
    <>
      <h2>Is the journal unchanged?</h2>
      <Button disabled={busy} onClick={() => start(run({ command: 'audit verify', namespace }))}>
        {busy ? 'Verifying …' : 'Verify'}
      </Button>
      {result ? <Verdict result={result} /> : <Failed of={read} />}
    </>
  );
}
