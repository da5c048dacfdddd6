import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Fact, factId } from '../../../src/notify/fact.ts';
import { mailOf } from '../../../src/notify/media/email.ts';
import { cloudEventOf } from '../../../src/notify/media/webhook.ts';
import type { Message } from '../../../src/notify/sink.ts';
import { shown } from '../../support/shown-output.ts';

const uid = '4f1d9c1e-6a0b-4b8e-9d53-0c9a8e3f7b21';
const atMs = Date.UTC(2026, 10, 21, 9, 30);
const fact: Fact = {
  id: factId(uid, 'requested'),
  event: 'requested',
  atMs,
  request: { kind: 'ExecAccessRequest', namespace: 'payments', name: 'debug', uid },
  template: 'payments-shell',
  requester: 'alice',
  reason: 'INC-42 disk full',
  permissions: ['exec'],
  duration: '30m',
  approvals: [{ name: 'peer', have: 0, need: 1, groups: ['devs'] }],
  votes: [],
};
const message: Message = {
  id: fact.id,
  facts: [fact],
  source: '9c2d3f0a-51b7-4e6e-8a37-2d1b6f9e0c44',
  nowMs: atMs,
};

describe('a message', () => {
  it('reads as the page about notifications shows', () => {
    assert.match(mailOf(message).text, shown('concepts/notifications.md', 'alice asks'));
  });

  it('is the CloudEvent that the page about webhooks shows', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/tasks/notify-webhook.md'), 'utf8');
    const [, json = ''] = /^```json\n(.*?)^```/ms.exec(page) ?? [];
    const event = cloudEventOf({ ...message, linkBase: 'https://console.example.org' });
    assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(event)));
  });
});
