import assert from 'node:assert/strict';
import { requestCodes } from '../../../src/api/access/codes.ts';
import { codeEntries, endEntries } from '../../../src/client/code-entries.ts';
import { withoutCalls } from './objects.ts';

describe('the codes', () => {
  const run = withoutCalls();

  it('are in a list of one line each, of at most 100 columns, in the order of the alphabet', async () => {
    const { code, stdout } = await run('help', 'codes');
    const [header = '', ...lines] = stdout.trimEnd().split('\n');
    assert.equal(code, 0);
    assert.deepEqual(header.split(/ {3,}/), ['CODE', 'MEANING', 'TO DO']);
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      codeEntries.map((entry) => entry.code).sort(),
    );
    assert.deepEqual(
      lines.filter((line) => line.length > 100),
      [],
    );
  });

  it('are whole in the list as JSON', async () => {
    const { stdout } = await run('help', 'codes', '-o', 'json');
    const { items } = JSON.parse(stdout) as { items: object[] };
    assert.equal(items.length, codeEntries.length);
    assert.deepEqual(
      new Set(items.map((item) => JSON.stringify(item))),
      new Set(codeEntries.map((entry) => JSON.stringify(entry))),
    );
  });

  it('have no Markdown', () => {
    const texts = [...codeEntries, ...endEntries].flatMap(({ meaning, remedy }) => [meaning, remedy]);
    assert.deepEqual(
      texts.filter((text) => /`|\]\(/.test(text)),
      [],
    );
    assert.ok(texts.some((text) => text.includes('(docs/tasks/record-sessions.md)')));
    assert.ok(texts.some((text) => text.includes('contract (docs/inventory/component-answers.md#reports)')));
  });

  const { meaning, remedy } = requestCodes.NotEligible;
  for (const asked of ['NotEligible', 'noteligible', 'NOTELIGIBLE']) {
    it(`are explained in whole: ${asked}`, async () => {
      const { code, stdout } = await run('explain-code', asked);
      const lines = [
        'Code: NotEligible',
        'Topic: Requests',
        'For: requester',
        `Meaning: ${meaning}`,
        `To do: ${remedy}`,
      ];
      assert.deepEqual([code, stdout.trim().replaceAll(/\s+/g, ' ')], [0, lines.join(' ')]);
      for (const line of stdout.split('\n')) assert.ok(line.length <= 100, line);
    });
  }

  it('of ends are explained for grants and for sessions', async () => {
    const { stdout } = await run('explain-code', 'expired');
    assert.deepEqual(stdout.match(/^Topic: .*$/gm), ['Topic:   Ends of grants', 'Topic:   Ends of sessions']);
  });

  it('of Kubernetes itself, Forbidden, is explained, although it is in no list', async () => {
    const { code, stdout } = await run('explain-code', 'Forbidden');
    assert.equal(code, 0);
    assert.match(stdout, /^Topic: +Kubernetes$/m);
    assert.match(stdout, /kubectl auth can-i --list/);
  });

  const unknown: readonly (readonly [asked: string, question: string])[] = [
    ['NotEligble', '; did you mean NotEligible?'],
    ['notready', '; did you mean TemplateNotReady, or GatewayNotReady?'],
    ['Audit', '; did you mean AuditUnavailable?'],
    ['xyz', ''],
  ];
  for (const [asked, question] of unknown) {
    it(`name the nearest for an unknown one: ${asked}`, async () => {
      const { code, stdout, stderr } = await run('explain-code', asked);
      const message = `drawbridge: unknown code "${asked}"${question}; to list all: drawbridge help codes\n`;
      assert.deepEqual([code, stdout, stderr], [2, '', message]);
    });
  }
});
