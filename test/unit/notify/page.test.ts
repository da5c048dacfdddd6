import assert from 'node:assert/strict';
import { type Fact, factId } from '../../../src/notify/fact.ts';
import { mailOf } from '../../../src/notify/media/email.ts';
import { shown } from '../../support/shown-output.ts';

describe('a message', () => {
  it('reads as the page about notifications shows', () => {
    const fact: Fact = {
      id: factId('u', 'requested'),
      event: 'requested',
      atMs: 0,
      request: { kind: 'ExecAccessRequest', namespace: 'payments', name: 'debug', uid: 'u' },
      template: 'payments-shell',
      requester: 'alice',
      reason: 'INC-42 disk full',
      permissions: ['exec'],
      duration: '30m',
      approvals: [{ name: 'peer', have: 0, need: 1, groups: ['devs'] }],
      votes: [],
    };
    const { text } = mailOf({ id: fact.id, facts: [fact], source: 'cluster', nowMs: 0 });
    assert.match(text, shown('concepts/notifications.md', 'alice asks'));
  });
});
