import assert from 'node:assert/strict';
import type { KnownBlock } from '@slack/types';
import { mailOf } from '../../../../src/notify/media/email.ts';
import { slackMessage } from '../../../../src/notify/media/slack.ts';
import { teamsMessage } from '../../../../src/notify/media/teams.ts';
import { textOf } from '../../../../src/notify/media/text.ts';
import { cardProblems } from './adaptive-card.ts';
import { blockProblems } from './slack-blocks.ts';
import { factOf, messageOf } from './stage.ts';

/** What a user may write as a reason, or be named. */
const hostile: Record<string, string> = {
  'a mention of a channel': '<!channel> @channel @here <!here|here> <!subteam^S1> <@U123>',
  'a link with a false text': '<https://evil.example|https://console.example.com>',
  Markdown: '[Approve](https://evil.example) **bold** _it_ # head `code` ![x](https://evil.example/x.png)',
  mrkdwn: '*bold* _it_ ~no~ `code` ```block``` > quote :smile:',
  HTML: '<script>alert(1)</script><img src=x onerror=alert(1)><a href="javascript:x">y</a></td></table>',
  attributes: '" onmouseover="alert(1)" \' x=\'',
  entities: '&lt;b&gt; &amp;amp; &#60; &nbsp',
  'functions of cards': '{{DATE(2026-11-21T09:30:00Z, SHORT)}} {{{TIME(2026-11-21T09:30:00Z)}}}',
};

const unescapedXml = (text: string): string =>
  text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

const unescapedHtml = (text: string): string =>
  text.replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)));

describe('a text of an attacker', () => {
  for (const [what, reason] of Object.entries(hostile)) {
    describe(`with ${what}`, () => {
      const message = messageOf([factOf({ reason, requester: reason.slice(0, 60) })]);
      const shown = `“${reason}”`;

      it('is text in Slack', () => {
        const blocks: readonly KnownBlock[] = slackMessage(textOf(message)).blocks;
        assert.deepEqual(blockProblems(blocks), []);
        const json = JSON.stringify(blocks);
        assert.doesNotMatch(json, /mrkdwn|"emoji":true/);
        const texts = blocks.map((block) => (block.type === 'section' ? (block.text?.text ?? '') : ''));
        assert.ok(texts.some((text) => unescapedXml(text) === `Reason: ${shown}`));
      });

      it('is text in the notification of Slack', () => assert.doesNotMatch(slackMessage(textOf(message)).text, /[<>]/));

      it('is text in Teams', () => {
        const { content } = teamsMessage(textOf(message)).attachments[0] ?? assert.fail();
        assert.deepEqual(cardProblems(content), []);
        const runs = content.body.flatMap(({ type, inlines }) => {
          assert.equal(type, 'RichTextBlock');
          return inlines;
        });
        assert.deepEqual(new Set(runs.map(({ type }) => type)), new Set(['TextRun']));
        assert.ok(runs.some(({ text }) => text.replace(/\{ (?=\{)/g, '{') === shown));
        assert.doesNotMatch(JSON.stringify(runs.map(({ text }) => text)), /\{\{/);
      });

      it('is text in mail', () => {
        const { text, html } = mailOf(message);
        assert.ok(text.split('\n').includes(`Reason: ${shown}`));
        const lines = html.split(/<br>\n|<\/?p>/).map(unescapedHtml);
        assert.ok(lines.includes(`Reason: ${shown}`));
        const tags = new Set([...html.matchAll(/<\/?([a-z0-9!]+)/gi)].map(([, tag = '']) => tag.toLowerCase()));
        assert.deepEqual([...tags], ['!doctype', 'html', 'head', 'meta', 'title', 'body', 'p', 'br', 'a']);
      });
    });
  }

  it('of 1,024 emoji is cut between two characters in each medium', () => {
    const text = textOf(messageOf([factOf({ reason: '😀'.repeat(1024) })]));
    const parts = [JSON.stringify(slackMessage(text)), JSON.stringify(teamsMessage(text)), mailOf(messageOf([])).text];
    for (const part of parts) {
      assert.ok(part.isWellFormed());
      assert.doesNotMatch(part, /\\ud8/i);
    }
    assert.deepEqual(blockProblems(slackMessage(text).blocks as readonly KnownBlock[]), []);
  });

  it('that grows when it is escaped is cut between two entities', () => {
    const text = textOf(messageOf([factOf({ requester: '&'.repeat(300) })]));
    const [header] = slackMessage(text).blocks;
    assert.deepEqual(blockProblems([header as KnownBlock]), []);
  });
});
