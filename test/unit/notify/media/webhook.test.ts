import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { providerSecretType } from '../../../../src/api/notify/notification-provider.ts';
import { cloudEventOf } from '../../../../src/notify/media/webhook.ts';
import * as sinks from '../../../../src/notify/sink-of.ts';
import { factOf, HttpsSink, messageOf, nowMs, send, sinkOf } from './stage.ts';

const secretOf = (key: Buffer): string => `whsec_${key.toString('base64')}`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const keysOf = (signingKey: string): readonly Buffer[] => {
  const data = { address: base64('https://example.com'), signingKey: base64(signingKey) };
  return sinks.sinkOf({ type: 'Webhook', secretRef: { name: 'sink' } }, { type: providerSecretType, data }).signingKeys;
};

/** Its JSON, without the fields that are undefined. */
const eventOf = (...parameters: Parameters<typeof messageOf>) =>
  JSON.parse(JSON.stringify(cloudEventOf(messageOf(...parameters))));

describe('the CloudEvent of a message', () => {
  const { id } = factOf();
  const link = 'https://console.example.com/requests/payments/PodAccessRequest/shell-x7k2p';
  const command = 'kubectl drawbridge approve shell-x7k2p -n payments';

  it('has the fields of the fact, a link, and a command', () => {
    assert.deepEqual(eventOf([factOf()]), {
      specversion: '1.0',
      id,
      source: 'prod-eu-1',
      type: 'dev.drawbridge.access.requested.v1',
      subject: 'payments/PodAccessRequest/shell-x7k2p',
      time: '2026-11-21T09:30:00Z',
      datacontenttype: 'application/json',
      data: {
        request: { kind: 'PodAccessRequest', namespace: 'payments', name: 'shell-x7k2p', uid: 'uid-1' },
        template: 'payments-shell',
        requester: 'alice',
        reason: 'orders are stuck',
        permissions: ['exec', 'get pods/log'],
        duration: '30m',
        approvals: [{ name: 'security', have: 0, need: 1, groups: ['sec-oncall'] }],
        votes: [],
        link,
        command,
      },
    });
  });

  it('has every field that a fact may have, and no other', () => {
    const details = {
      pod: 'web-0',
      votes: [{ voter: 'bob', decision: 'Approve', reason: 'ok' }],
      end: { how: 'Revoked', code: 'Vote', by: 'carol' },
      extension: { index: 1, by: '30m', reason: 'more' },
      session: { name: 's', user: 'alice', stream: 'exec', container: 'web', recording: 'Off' },
    } as const;
    const token = 'must stay';
    const fact = {
      ...factOf({ event: 'ended', untilMs: nowMs, reviewByMs: nowMs, ...details }),
      token,
      session: { ...details.session, token },
      end: { ...details.end, token },
      votes: details.votes.map((vote) => ({ ...vote, token })),
      approvals: [{ name: 'a', have: 1, need: 1, groups: [], token }],
    };
    const { data } = eventOf([fact]);
    const times = { until: '2026-11-21T09:30:00Z', reviewBy: '2026-11-21T09:30:00Z' };
    assert.deepEqual(data, { ...data, ...details, ...times });
    assert.doesNotMatch(JSON.stringify(data), /token|must stay/);
  });

  it('of a digest has its events, and their number', () => {
    const facts = Array.from({ length: 100 }, (_, i) => factOf({ id: `fact-${i}` }));
    const { type, id: digestId, data, subject } = eventOf(facts, { id: 'digest-1' });
    assert.deepEqual([type, digestId, subject], ['dev.drawbridge.access.digest.v1', 'digest-1', undefined]);
    assert.deepEqual([data.count, data.events.length, data.events[1].id], [100, 100, 'fact-1']);
    assert.equal(data.events[0].type, 'dev.drawbridge.access.requested.v1');
  });

  it('of a test has no data', () => {
    const { type, data } = eventOf([]);
    assert.deepEqual([type, data], ['dev.drawbridge.access.test.v1', {}]);
  });
});

describe('a webhook', () => {
  let sink: HttpsSink;
  before(async () => {
    sink = await HttpsSink.open();
  });
  after(() => sink.close());

  it('is signed by each key, as another implementation verifies', async () => {
    const [key, previous] = [randomBytes(24), randomBytes(64)];
    const reason = 'ü 😀 "quoted" \u2028';
    const answer = await send(sinkOf(sink.url, { signingKeys: [key, previous] }), messageOf([factOf({ reason })]));
    assert.deepEqual(answer, { delivered: true, said: 'HTTP 204' });
    const [{ headers, body, path } = assert.fail()] = sink.received;
    assert.equal(path, '/hook');
    assert.equal(headers['content-type'], 'application/cloudevents+json');
    assert.equal(headers['webhook-id'], factOf().id);
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    for (const secret of [key, previous].map(secretOf)) {
      const verified = new Webhook(secret).verify(body, signed) as { data: { reason: string } };
      assert.equal(verified.data.reason, reason);
    }
    assert.throws(() => new Webhook(secretOf(randomBytes(32))).verify(body, signed));
  });

  it('has a key of 24 to 64 bytes in base64', () => {
    for (const bytes of [24, 25, 26, 64]) {
      const key = randomBytes(bytes);
      assert.deepEqual(keysOf(secretOf(key)), [key]);
    }
    const short = secretOf(randomBytes(23));
    for (const text of ['', 'whsec_', short, secretOf(randomBytes(65)), `${short}=`])
      assert.throws(() => keysOf(text), { code: 'SecretInvalid' }, text);
  });
});
