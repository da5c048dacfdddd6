import { fstatSync } from 'node:fs';
import { destinationOf } from '../../../src/audit/fd-writer.ts';
import { type OpenJournal, openJournal } from '../../../src/audit/journal.ts';
import type { AuditRecord } from '../../../src/audit/record.ts';
import { systemClock } from '../../../src/kit/clock.ts';

/**
 * Appends two records to a journal on standard output and reopens it in between. Then appends 200 records to the journal at argv[2], and
 * kills itself as soon as the last one is acknowledged.
 */
const open = (auditLog: string): OpenJournal =>
  openJournal({ destination: destinationOf(auditLog), replica: 'child', clock: systemClock });
const record = (name: string): AuditRecord => ({
  event: 'grant',
  verdict: 'granted',
  who: { user: 'alice' },
  what: { operation: 'GRANT', apiVersion: 'v1', kind: 'Pod', name },
});
const output = open('-');
await output.append(record(fstatSync(1).isSocket() ? 'to a socket' : 'not to a socket'));
output.reopen();
await output.append(record('after it was opened anew'));
const journal = open(process.argv[2] ?? '');
for (let i = 1; i <= 200; i++) await journal.append(record(`pod-${i}`));
process.kill(process.pid, 'SIGKILL');
