import assert from 'node:assert/strict';
import type { KnownBlock } from '@slack/types';
import type { Answer, Message, Sink } from '../../../../src/notify/sink.ts';
import { blockProblems } from './slack-blocks.ts';
import { factOf, HttpsSink, messageOf, send, sinkOf } from './stage.ts';

interface Posted {
  readonly blocks: readonly KnownBlock[];
  readonly text: string;
  readonly channel?: string;
  readonly ts?: string;
}

describe('Slack', () => {
  let slack: HttpsSink;
  /** What the API answers to the next calls; then it accepts. */
  let answers: object[];
  before(async () => {
    slack = await HttpsSink.open();
    slack.answer = (response, { body, path }) => {
      const posted = JSON.parse(body) as Posted;
      assert.deepEqual(blockProblems(posted.blocks), []);
      // An incoming webhook answers in text.
      if (path === '/hook') return void response.end('ok');
      const ok = { ok: true, channel: 'C0123', ts: posted.ts ?? '1700000000.000100', message: posted };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answers.shift() ?? ok));
    };
  });
  beforeEach(() => {
    slack.received.length = 0;
    answers = [];
  });
  after(() => slack.close());

  const message = messageOf([factOf()]);
  const withToken = (rest: Partial<Sink> = {}): Sink =>
    sinkOf(`https://127.0.0.1:${slack.port}/api/`, {
      type: 'Slack',
      token: 'xoxb-token-1',
      channel: '#access',
      ...rest,
    });
  const sendWithToken = (rest: Partial<Message> = {}): Promise<Answer> => send(withToken(), { ...message, ...rest });
  const calls = (): string[] => slack.received.map(({ path }) => path);
  const posted = (index = 0): Posted => JSON.parse(slack.received[index]?.body ?? '');

  it('gets a message by an incoming webhook', async () => {
    const answer = await send(sinkOf(slack.url, { type: 'Slack' }), message);
    assert.deepEqual(answer, { delivered: true, said: 'HTTP 200: ok' });
    assert.equal(posted().text, 'alice asks for access in payments');
    assert.deepEqual(
      [...new Set(posted().blocks.map(({ type }) => type))],
      ['header', 'section', 'rich_text', 'actions', 'context'],
    );
  });

  it('gets a message in a channel by a token, and says where it is', async () => {
    const answer = await sendWithToken();
    assert.deepEqual(answer, { delivered: true, said: 'Slack: ok', ref: 'C0123/1700000000.000100' });
    assert.deepEqual(calls(), ['/api/chat.postMessage']);
    assert.equal(slack.received[0]?.headers.authorization, 'Bearer xoxb-token-1');
    assert.equal(posted().channel, '#access');
  });

  it('edits the earlier message', async () => {
    const answer = await sendWithToken({ earlier: 'C0999/1600000000.000200' });
    assert.deepEqual(calls(), ['/api/chat.update']);
    assert.deepEqual([posted().channel, posted().ts], ['C0999', '1600000000.000200']);
    assert.equal(answer.delivered && answer.ref, 'C0123/1600000000.000200');
  });

  for (const error of ['message_not_found', 'cant_update_message', 'channel_not_found'])
    it(`gets a new message if the earlier one is lost (${error})`, async () => {
      answers = [{ ok: false, error }];
      const answer = await sendWithToken({ earlier: 'C0999/1600000000.000200' });
      assert.deepEqual(calls(), ['/api/chat.update', '/api/chat.postMessage']);
      assert.equal(answer.delivered, true);
    });

  const refusals: Record<string, [answer: object, expected: object]> = {
    'a revoked token': [{ ok: false, error: 'invalid_auth' }, { said: 'Slack: invalid_auth' }],
    'an unknown channel': [{ ok: false, error: 'channel_not_found' }, { said: 'Slack: channel_not_found' }],
    'too many messages': [{ ok: false, error: 'ratelimited' }, { said: 'Slack: ratelimited' }],
    'an answer of another server': [{ hello: 1 }, { said: 'Slack: the answer is not one of the Slack API' }],
  };
  for (const [what, [answer, expected]] of Object.entries(refusals))
    it(`refuses ${what}`, async () => {
      answers = [answer];
      const found = await sendWithToken();
      assert.deepEqual(found, { delivered: false, code: 'Refused', ...expected });
    });

  it('gets no new message while it takes none', async () => {
    answers = [{ ok: false, error: 'ratelimited' }];
    await sendWithToken({ earlier: 'C0999/1600000000.000200' });
    assert.deepEqual(calls(), ['/api/chat.update']);
  });

  it('limits messages by HTTP 429', async () => {
    const { answer } = slack;
    slack.answer = (response) =>
      response.writeHead(429, { 'retry-after': '13' }).end('{"ok":false,"error":"ratelimited"}');
    const found = await sendWithToken();
    slack.answer = answer;
    assert.equal(!found.delivered && found.retryAfterMs, 13_000);
  });

  it('accepts the longest message', async () => {
    const long = '&'.repeat(2000);
    const fact = factOf({
      event: 'emergency',
      requester: long,
      reason: long,
      pod: 'p'.repeat(253),
      permissions: Array.from({ length: 64 }, () => long),
      untilMs: 0,
      reviewByMs: 0,
      votes: [{ voter: long, decision: 'Approve', reason: long }],
      extension: { index: 9, by: long, reason: long },
      end: { how: long, code: long, by: long },
      session: { name: long, user: long, stream: long, container: long, recording: long },
    });
    assert.equal((await send(withToken(), messageOf([fact]))).delivered, true);
    const facts = Array.from({ length: 100 }, () => fact);
    assert.equal((await send(withToken(), messageOf(facts, { id: 'digest' }))).delivered, true);
    const digest = JSON.stringify(posted(1).blocks);
    assert.match(digest, /and 80 more/);
  });

  it('gets no link that is too long for a button', async () => {
    const linkBase = `https://console.example.com/${'x'.repeat(3000)}`;
    assert.equal((await sendWithToken({ linkBase })).delivered, true);
    assert.doesNotMatch(JSON.stringify(posted().blocks), /actions/);
  });
});
