import assert from 'node:assert/strict';
import { readCommandLine } from '../../../src/client/args.ts';
import type { Io } from '../../../src/client/command.ts';
import { commands } from '../../../src/client/commands.ts';
import { pluck } from '../../support/pluck.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const kind = 'PodAccessRequest';
const line = (event: string, fields: object): string =>
  JSON.stringify({ chain: '12d37073ddee9437a24b4ee0', seq: 1, time: '2026-11-21T09:00:00.000000Z', event, ...fields });
const granted = (user: string, uid: string, fields: object = {}): string =>
  line('grant', {
    verdict: 'granted',
    who: { user },
    what: { kind, namespace: 'payments', name: 'debug', uid },
    template: 'shell',
    pod: 'debug-access',
    expiresAt: '2026-11-21T10:00:00Z',
    ...fields,
  });

const report = async (journal: readonly string[], ...flags: string[]): Promise<{ stdout: string; stderr: string }> => {
  const out = { stdout: '', stderr: '' };
  const { command, args } = readCommandLine(['audit', 'report', '-', ...flags], commands);
  const io = {
    print: (text: string) => {
      out.stdout += text;
    },
    printError: (text: string) => {
      out.stderr += text;
    },
    stdin: (async function* () {
      yield Buffer.from(journal.join('\n'));
    })(),
  } as Partial<Io> as Io;
  const clock = new SimulatedClock(Date.parse('2026-11-21T12:00:00Z'));
  const connect = () => Promise.reject(new Error('no call'));
  assert.equal(await command.run({ args, io, clock, signal: new AbortController().signal, connect }), 0);
  return out;
};

const itemsOf = async (...args: Parameters<typeof report>): Promise<Record<string, string>[]> => {
  const [journal, ...flags] = args;
  return JSON.parse((await report(journal, ...flags, '-o', 'json')).stdout).items;
};

describe('drawbridge audit report', () => {
  const extended = (fields: object = {}) =>
    line('grant', { verdict: 'extended', what: { kind, uid: 'u1' }, expiresAt: '2026-11-21T11:00:00Z', ...fields });
  const ended = (uid: string) =>
    line('revocation', { what: { kind, uid }, code: 'Revoked', time: '2026-11-21T09:30:00.5Z' });

  it('has a row for each grant, with its end, its approvers, and its extension', async () => {
    const votes = [{ voter: 'carol', onBehalfOf: 'dora' }];
    const items = await itemsOf([
      granted('alice', 'u1', { votes, reason: 'INC-42' }),
      extended({ votes: [{ voter: 'erin' }] }),
      ended('u1'),
      'not a line of a journal',
      `2026-11-21 prefix ${granted('bob', 'u2', { code: 'Emergency' })}`,
    ]);
    assert.deepEqual(pluck(items, 'who', 'approvedBy', 'until', 'end', 'why'), [
      ['alice', 'carol for dora, erin', '2026-11-21T11:00:00Z', 'Revoked', 'INC-42'],
      ['bob', 'emergency', '2026-11-21T10:00:00Z', '', ''],
    ]);
    assert.equal(items[1]?.['ended'], '');
  });

  const admission = (user: string, uid: string, operation: string, fields: object = {}): string =>
    line('admission', {
      verdict: 'allowed',
      who: { user },
      what: { operation, kind: 'PodAccessRequest', namespace: 'payments', name: 'debug', uid },
      dryRun: false,
      ...fields,
    });
  const revokes = { message: 'revokes the access' };
  const server = 'system:serviceaccount:drawbridge-system:drawbridge';
  const endings: readonly (readonly [code: string, lines: readonly string[], fields: object, endedBy: string])[] = [
    ['Revoked', [admission('carol', 'u1', 'UPDATE', revokes), admission(server, 'u1', 'DELETE')], {}, 'carol'],
    ['Revoked', [admission('eve', 'u1', 'UPDATE', { ...revokes, verdict: 'denied' })], {}, ''],
    ['Revoked', [admission('eve', 'u1', 'UPDATE', { ...revokes, dryRun: true })], {}, ''],
    ['Revoked', [admission('carol', 'u2', 'UPDATE', revokes)], {}, ''],
    ['Deleted', [admission('alice', 'u1', 'DELETE')], {}, 'alice'],
    ['VoteDenied', [], { votes: [{ voter: 'carol', decision: 'Deny' }] }, 'carol'],
    ['Expired', [admission(server, 'u1', 'DELETE')], {}, ''],
  ];
  for (const [code, lines, fields, endedBy] of endings) {
    it(`says who ended access: ${code} by ${endedBy || 'no user'} with ${lines.length} lines`, async () => {
      const end = line('revocation', { what: { kind, uid: 'u1' }, code, time: '2026-11-21T09:30:00.5Z', ...fields });
      const { stdout, stderr } = await report([...lines, end, granted('alice', 'u1')], '-o', 'json');
      assert.deepEqual(
        JSON.parse(stdout).items.map((row: { end: string; endedBy: string }) => [row.end, row.endedBy]),
        [[code, endedBy]],
      );
      assert.equal(stderr, '');
    });
  }

  it('has the review of an emergency', async () => {
    const reviewed = (uid: string, decision: string) =>
      line('review', { verdict: 'reviewed', what: { kind, uid }, votes: [{ voter: 'carol', decision }] });
    const emergencies = ['u1', 'u2', 'u3'].map((uid) => granted('alice', uid, { code: 'Emergency' }));
    const lines = [reviewed('u1', 'Deny'), reviewed('u2', 'Approve'), ...emergencies, granted('bob', 'u4')];
    const reviews = ['carol: not justified', 'carol: justified', 'not in these journals', ''];
    assert.deepEqual(pluck(await itemsOf(lines), 'review'), reviews);
  });

  it('is CSV that no spreadsheet runs and no terminal obeys', async () => {
    const reason = '=HYPERLINK("x"), \u001b[2J\n';
    const { stdout } = await report([granted('a,b', 'u1', { reason })], '-o', 'csv');
    const [, row] = stdout.split('\r\n');
    assert.equal(
      row,
      '2026-11-21T09:00:00.000000Z,,,"a,b",payments,shell,debug-access,,"\'=HYPERLINK(""x""), \\u001b[2J\\n",2026-11-21T10:00:00Z,debug,,',
    );
  });

  it('is CSV that no spreadsheet runs, whatever its separator is', async () => {
    const cells = ['a;=1+1', 'a; "+1', 'a\t=1', '＝1+1', ' =1+1', 'a;b', 'a=1'];
    const rows = cells.map((reason, index) => granted('alice', `u${index}`, { reason }));
    const { stdout } = await report(rows, '-o', 'csv');
    const found = stdout
      .trim()
      .split('\r\n')
      .slice(1)
      .map((row) => row.split(',').at(8));
    assert.deepEqual(found, ["a;'=1+1", `"a;' ""+1"`, 'a\\t=1', "'＝1+1", "' =1+1", 'a;b', 'a=1']);
  });

  it('has only the grants of the namespace that -n names', async () => {
    const what = { kind, namespace: 'fleet', name: 'debug', uid: 'u2' };
    const rows = [granted('alice', 'u1'), granted('bob', 'u2', { what })];
    assert.deepEqual(pluck(await itemsOf(rows, '-n', 'fleet'), 'who'), ['bob']);
  });

  const spans: readonly (readonly [since: string, rows: number])[] = [
    ['1h59m59s', 0],
    ['2h', 1],
    ['4h', 1],
    ['1d', 1],
  ];

  it('keeps a grant as it is after an extension of it was refused', async () => {
    const votes = [{ voter: 'carol' }];
    const refused = line('grant', {
      verdict: 'denied',
      what: { namespace: 'payments', name: 'debug', uid: 'u1' },
      code: 'NotExtendable',
      time: '2026-11-21T09:20:00Z',
    });
    const lines = [granted('alice', 'u1', { votes, reason: 'INC-42' }), refused];
    assert.deepEqual(await itemsOf(lines), await itemsOf(lines.slice(0, 1)));
  });

  it('is the same in every order of the files', async () => {
    // The clock of the other replica is behind.
    const extension = extended({ time: '2026-11-21T08:59:59Z' });
    const [grant, end] = [granted('alice', 'u1'), ended('u1')];
    const rows = await itemsOf([grant, extension, end]);
    for (const lines of [
      [end, extension, grant],
      [end, grant, extension],
    ])
      assert.deepEqual(await itemsOf(lines), rows);
  });

  it('counts no line about an object of a grant, or about an entry of the inventory', async () => {
    const revoked = (of: string) => line('revocation', { what: { kind: of, uid: of } });
    const lines = ['RoleBinding', 'Pod', 'ClusterInventory'].map(revoked);
    assert.equal((await report([granted('alice', 'u1'), ...lines])).stderr, '');
  });

  it('says which lines are about grants that no file has', async () => {
    const { stdout, stderr } = await report([extended(), ended('u1')], '-o', 'name');
    assert.equal(stdout, '');
    assert.match(stderr, /grants that these journals do not contain; add older files, and the files of all replicas$/m);
  });

  it('has a row for each grant of versions that wrote no uid', async () => {
    const old = (seq: number, user: string): string =>
      granted(user, '', { seq, what: { kind, namespace: 'payments', name: user } });
    const rows = await itemsOf([old(1, 'alice'), old(2, 'bob')]);
    assert.equal(rows.length, 2);
  });

  for (const [since, rows] of spans) {
    it(`has ${rows} grants that ended two hours ago with --since ${since}`, async () => {
      const { stdout, stderr } = await report([granted('alice', 'u1')], '--since', since, '-o', 'name');
      assert.equal(stdout, rows === 0 ? '' : 'debug\n');
      assert.equal(stderr, rows === 0 ? 'the journals have no grant in the time of --since\n' : '');
    });
  }
});
