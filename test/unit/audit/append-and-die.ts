import { destinationOf } from '../../../src/audit/fd-writer.ts';
import { openJournal } from '../../../src/audit/journal.ts';
import { systemClock } from '../../../src/kit/clock.ts';

/** Appends 200 records to the journal at argv[2] and kills itself the moment the last one is acknowledged. */
const journal = openJournal({
  destination: destinationOf(process.argv[2] ?? '-'),
  replica: 'child',
  clock: systemClock,
});
for (let i = 1; i <= 200; i++) {
  await journal.append({
    event: 'grant',
    verdict: 'granted',
    who: { user: 'alice' },
    what: { operation: 'GRANT', apiVersion: 'v1', kind: 'Pod', name: `pod-${i}` },
  });
}
process.kill(process.pid, 'SIGKILL');
