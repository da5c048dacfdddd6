import assert from 'node:assert/strict';
import { cardProblems } from './adaptive-card.ts';
import { factOf, HttpsSink, messageOf, send, sinkOf } from './stage.ts';

describe('Teams', () => {
  let teams: HttpsSink;
  before(async () => {
    teams = await HttpsSink.open();
    teams.answer = (response, { body }) => {
      assert.ok(Buffer.byteLength(body) <= 28 * 1024, `${Buffer.byteLength(body)} bytes`);
      const { type, attachments } = JSON.parse(body);
      assert.deepEqual([type, attachments.length], ['message', 1]);
      assert.equal(attachments[0].contentType, 'application/vnd.microsoft.card.adaptive');
      assert.deepEqual(cardProblems(attachments[0].content), []);
      response.writeHead(202).end();
    };
  });
  beforeEach(() => {
    teams.received.length = 0;
  });
  after(() => teams.close());

  it('gets a valid card that links the request', async () => {
    const answer = await send(sinkOf(teams.url, { type: 'Teams' }), messageOf([factOf()]));
    assert.deepEqual(answer, { delivered: true, said: 'HTTP 202' });
    const { content } = JSON.parse(teams.received[0]?.body ?? '').attachments[0];
    assert.equal(content.body[0].inlines[0].text, 'alice asks for access in payments');
    assert.match(content.actions[0].url, /\/requests\/payments\/PodAccessRequest\/shell-x7k2p$/);
  });

  it('accepts a test, and the longest message and digest', async () => {
    const long = '\\"漢'.repeat(700);
    const fact = factOf({
      event: 'emergency',
      requester: long,
      reason: long,
      pod: long,
      permissions: [long],
      untilMs: 0,
      reviewByMs: 0,
      votes: [{ voter: long, decision: 'Approve', reason: long }],
      extension: { index: 9, by: long, reason: long },
      end: { how: long, code: long, by: long },
      session: { name: long, user: long, stream: long, container: long, recording: long },
    });
    for (const facts of [[], [fact], Array.from({ length: 100 }, () => fact)])
      assert.equal((await send(sinkOf(teams.url, { type: 'Teams' }), messageOf(facts))).delivered, true);
  });

  it('has a validator that finds what is wrong', () => {
    const card = {
      type: 'AdaptiveCard',
      version: '1.4',
      body: [{ type: 'Nonsense' }, { type: 'TextBlock', size: 'Huge' }],
    };
    assert.equal(cardProblems(card).length, 2);
  });
});
