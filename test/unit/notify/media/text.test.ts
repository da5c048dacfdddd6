import assert from 'node:assert/strict';
import { accessEvents } from '../../../../src/api/notify/events.ts';
import type { Fact } from '../../../../src/notify/fact.ts';
import { textOf } from '../../../../src/notify/media/text.ts';
import { factOf, messageOf, nowMs } from './stage.ts';

const hourMs = 3_600_000;
const textFor = (rest: Partial<Fact>) => textOf(messageOf([factOf(rest)]));
const lineOf = (label: string, rest: Partial<Fact>): string | undefined =>
  textFor(rest).lines.find((line) => line.label === label)?.value;
const approve = { voter: 'bob', decision: 'Approve', reason: 'ticket checked' } as const;
const session = { name: 's-1', user: 'alice', stream: 'exec', container: 'web', recording: 'Required' } as const;

describe('the text of a message', () => {
  const open = { pod: 'web-0', untilMs: nowMs + hourMs };
  const get = 'kubectl drawbridge get shell-x7k2p -n payments';
  const approveCommand = 'kubectl drawbridge approve shell-x7k2p -n payments';
  const rows = {
    requested: [{}, 'alice asks for access in payments', approveCommand],
    approved: [{ votes: [approve] }, 'bob approved access of alice in payments', undefined],
    denied: [
      { end: { how: 'Denied', code: 'DeniedByVote', by: 'bob' } },
      'bob denied access of alice in payments',
      undefined,
    ],
    granted: [open, 'alice has access to pod web-0 in payments until 2026-11-21 10:30 UTC', get],
    emergency: [open, 'EMERGENCY: alice opened access to pod web-0 in payments without approval', get],
    ending: [
      open,
      'Access of alice to pod web-0 in payments ends at 2026-11-21 10:30 UTC',
      'kubectl drawbridge extend shell-x7k2p -n payments --by 30m',
    ],
    extended: [open, 'Access of alice to pod web-0 in payments was extended until 2026-11-21 10:30 UTC', undefined],
    ended: [open, 'Access of alice to pod web-0 in payments ended', get],
    'extension.requested': [
      { extension: { index: 2, by: '30m' } },
      'alice asks for more time in payments',
      `${approveCommand} --about Extension-2`,
    ],
    'review-owed': [{}, 'The emergency of alice in payments needs a review', `${approveCommand} --about Review`],
    'review-overdue': [
      {},
      'The review of the emergency of alice in payments is overdue',
      `${approveCommand} --about Review`,
    ],
    'session.started': [{ session }, 'alice started a session in payments', undefined],
    'session.ended': [{ session }, 'A session of alice in payments ended', undefined],
  } satisfies Record<(typeof accessEvents)[number], [Partial<Fact>, string, string | undefined]>;
  for (const event of accessEvents) {
    const [rest, title, command] = rows[event];
    it(`of ${event}: ${title}`, () => {
      const text = textFor({ event, ...rest });
      assert.deepEqual([text.title, text.command], [title, command]);
    });
  }

  it('of a denial without a voter names none', () =>
    assert.equal(textFor({ event: 'denied' }).title, 'Access of alice in payments was denied'));

  it('names a date that is not today', () =>
    assert.match(textFor({ event: 'ending', untilMs: nowMs + 24 * hourMs }).title, /ends at 2026-11-22 09:30 UTC$/));

  it('names a requester without a name', () =>
    assert.equal(textFor({ requester: '' }).title, 'an unknown user asks for access in payments'));

  const lines = {
    Requester: [{}, 'alice'],
    Reason: [{}, '“orders are stuck”'],
    Permissions: [{}, 'exec, get pods/log'],
    Pod: [open, 'web-0'],
    Request: [{}, 'payments/shell-x7k2p (PodAccessRequest), template payments-shell'],
    For: [{}, '30m'],
    Until: [open, '2026-11-21 10:30 UTC'],
    'Was open until': [{ ...open, event: 'ended' }, '2026-11-21 10:30 UTC'],
    Extension: [{ extension: { index: 1, by: '30m', reason: 'still reading' } }, '30m longer, “still reading”'],
    Approvals: [{}, 'security 0 of 1 from sec-oncall'],
    'Skipped approvals': [{ event: 'emergency' }, 'security (1 from sec-oncall)'],
    Decisions: [
      { votes: [approve, { voter: 'carol', decision: 'Deny' }] },
      'approved by bob, “ticket checked”; denied by carol',
    ],
    End: [{ event: 'ended', end: { how: 'Revoked', code: 'Vote', by: 'carol' } }, 'Revoked (Vote) by carol'],
    'Review by': [{ event: 'review-owed', reviewByMs: nowMs + hourMs }, '2026-11-21 10:30 UTC'],
    Session: [{ session }, 'exec by alice in container web, s-1, recording Required'],
  } satisfies Record<string, [Partial<Fact>, string]>;
  for (const [label, [rest, expected]] of Object.entries(lines))
    it(`says ${label}: ${expected}`, () => assert.equal(lineOf(label, rest), expected));

  it('leaves out what is absent', () => {
    const { reason: _, ...fact } = factOf({ approvals: [] });
    const labels = textOf(messageOf([fact])).lines.map(({ label }) => label);
    assert.deepEqual(labels, ['Requester', 'Permissions', 'Request', 'For']);
  });

  it('links the request in the console, with an escaped path', () => {
    const request = { kind: 'ExecAccessRequest', namespace: 'a b', name: '../x?#', uid: 'u' } as const;
    assert.equal(
      textFor({ request }).link,
      'https://console.example.com/requests/a%20b/ExecAccessRequest/..%2Fx%3F%23',
    );
    const { linkBase: _, ...rest } = messageOf([factOf()]);
    assert.equal(textOf(rest).link, undefined);
  });

  it('quotes names in commands for a shell', () => {
    const request = { kind: 'PodAccessRequest', namespace: 'n', name: "x'; rm -rf /", uid: 'u' } as const;
    assert.equal(textFor({ request }).command, "kubectl drawbridge approve 'x'\\''; rm -rf /' -n n");
  });

  it('of a test says so', () => {
    const { title, footer, lines } = textOf(messageOf([]));
    assert.deepEqual(
      [title, footer, lines],
      ['This is a test message of drawbridge', 'prod-eu-1, 2026-11-21 09:30 UTC', []],
    );
  });

  it('of a digest counts requests, and says how to see them', () => {
    const { title, digest, command } = textOf(messageOf([factOf(), factOf({ requester: 'bob' })]));
    assert.equal(title, '2 more requests wait for you in payments');
    assert.deepEqual(digest, ['alice asks for access in payments', 'bob asks for access in payments']);
    assert.equal(command, 'kubectl drawbridge pending -n payments');
  });

  it('of a digest has at most 20 of its messages', () => {
    const facts = Array.from({ length: 27 }, (_, i) => factOf({ requester: `user-${i}`, event: 'ended' }));
    const { title, digest, command } = textOf(messageOf(facts));
    assert.equal(title, '27 more messages about access in payments');
    assert.match(digest[0] ?? '', /user-0 /);
    assert.deepEqual([digest.length, digest.at(-1)], [21, 'and 7 more']);
    assert.equal(command, undefined);
  });

  describe('that an attacker wrote', () => {
    it('is one line', () => {
      assert.equal(
        lineOf('Reason', { reason: 'a\r\nApprovals: 2 of 2\u2028b\u0085c\vd' }),
        '“a Approvals: 2 of 2 b c d”',
      );
    });

    it('hides nothing', () => {
      const value = lineOf('Reason', { reason: 'a\u202egpj.exe\u200b\u0000\u001b[2J\u{e0041}' });
      assert.equal(value, '“a?gpj.exe???[2J?”');
    });

    it('is cut between two characters', () => {
      const value = lineOf('Reason', { reason: '😀'.repeat(1024) }) ?? '';
      assert.match(value, /^“(😀)+…”$/u);
      assert.ok(value.length <= 500);
      assert.ok(value.isWellFormed());
    });

    it('leaves room for the rest of the title', () => {
      const { title } = textFor({ event: 'granted', requester: 'x'.repeat(1000), pod: 'y'.repeat(253) });
      assert.ok(title.length <= 150, title);
      assert.match(title, /^x+… has access to pod y+/);
    });
  });
});
