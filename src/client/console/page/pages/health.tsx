import { useApp } from '../app.ts';
import { useServerNamespace } from '../journal.tsx';
import { Listing } from '../listing.tsx';
import { clockAheadMs } from '../time.ts';
import { Chip, type Columns, Facts, Title, type Tone } from '../ui.tsx';

/** Of `doctor`. */
type Check = Readonly<Record<'check' | 'result' | 'message', string>>;

const toneOf: Readonly<Record<string, Tone>> = { ok: 'good', found: 'bad' };

const columns: Columns<Check> = {
  Check: ({ check }) => check,
  Result: ({ result }) => <Chip tone={toneOf[result] ?? 'warn'}>{result}</Chip>,
  What: ({ message }) => message,
};

export function Health() {
  const { start } = useApp();
  const [namespace, field] = useServerNamespace();
  const aheadS = Math.round(clockAheadMs() / 1000);
  // The API server tells whole seconds.
  const agree = Math.abs(aheadS) < 2;
  const clocks = agree ? 'agree' : `the API server is ${Math.abs(aheadS)} s ${aheadS > 0 ? 'ahead' : 'behind'}`;
  return (
    <>
      <Title>Health</Title>
      <Facts
        entries={[
          ['API server', [start.server]],
          ['You', [start.user]],
          ['Your groups', [start.groups.join(', ')]],
          ['This client', [start.version]],
          ['Clocks', [clocks]],
        ]}
      />
      {field}
      <Listing
        command={{ command: 'doctor', namespace }}
        caption="Who can bypass drawbridge, and whether it works"
        columns={columns}
      />
    </>
  );
}
