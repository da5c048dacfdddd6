import assert from 'node:assert/strict';
import type { Journal } from '../../../src/audit/journal.ts';
import { SessionAudit, type SessionRecord } from '../../../src/gateway/session-audit.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { Log, LogFields } from '../../../src/observe/log.ts';

const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
const record: SessionRecord = {
  event: 'session',
  who: { user: 'alice' },
  what: { operation: 'CONNECT', apiVersion: 'v1', kind: 'Pod', namespace: 'payments', name: 'web-0' },
  session,
  request: 'debug',
  pod: 'web-0',
};

describe('an audit line of a session that cannot be written', () => {
  it('is logged with the namespace, the session, and the request', async () => {
    const logged: [string, LogFields | undefined][] = [];
    const log = {
      ...silentLog,
      error: (message: string, fields?: LogFields) => void logged.push([message, fields]),
    } as unknown as Log;
    const journal = { append: () => Promise.reject(new Error('no space')) } as unknown as Journal;
    await new SessionAudit(journal, log).ended(record, {});
    assert.deepEqual(logged, [
      [
        'no audit line for the end of a session',
        { namespace: 'payments', session, request: 'debug', error: 'no space' },
      ],
    ]);
  });
});
