import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readCommandLine } from '../../../src/client/args.ts';
import type { Io } from '../../../src/client/command.ts';
import { commands } from '../../../src/client/commands.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const line = (event: string, fields: object): string =>
  JSON.stringify({ chain: '12d37073ddee9437a24b4ee0', seq: 1, time: '2026-11-21T09:00:00.000000Z', event, ...fields });

/** A line of the webhook about a new request of alice, who is a developer. */
const asked = (fields: object = {}): string =>
  line('admission', {
    verdict: 'allowed',
    who: { user: 'alice', groups: ['devs', 'system:authenticated'] },
    what: { operation: 'CREATE', kind: 'PodAccessRequest', namespace: 'payments', name: 'debug', uid: 'u1' },
    template: 'shell',
    templateUid: 't1',
    templateGeneration: 1,
    duration: '1h',
    message: 'eligible by group',
    dryRun: false,
    ...fields,
  });
const denied = (code: string, fields: object = {}): string => asked({ verdict: 'denied', code, ...fields });
const granted = (fields: object = {}): string =>
  line('grant', {
    verdict: 'granted',
    who: { user: 'alice' },
    what: { operation: 'GRANT', kind: 'PodAccessRequest', namespace: 'payments', name: 'debug', uid: 'u1' },
    template: 'shell',
    expiresAt: '2026-11-21T10:00:00Z',
    ...fields,
  });
const template = (accessConfig: object = {}): object => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'shell', namespace: 'payments' },
  spec: {
    accessConfig: { allowedGroups: ['devs'], maxDuration: '4h', ...accessConfig },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
  },
});
const many = Array.from({ length: 32 }, (_, index) => `team-${index}`);
const approvals = { all: [{ name: 'peer', count: 2 }] };

describe('drawbridge review', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'review-'));
  });
  after(() => rm(directory, { recursive: true }));

  interface Result {
    readonly items: readonly { who: string; change: string; what: string; requests: number; names: string[] }[];
    readonly stderr: string;
  }
  async function review(changed: object | string, journal: readonly string[], ...flags: string[]): Promise<Result> {
    const file = join(directory, 'template.yaml');
    await writeFile(file, typeof changed === 'string' ? changed : JSON.stringify(changed));
    let [stdout, stderr] = ['', ''];
    const { command, args } = readCommandLine(['review', file, '-', '-o', 'json', ...flags], commands);
    const io = {
      print: (text: string) => {
        stdout += text;
      },
      printError: (text: string) => {
        stderr += text;
      },
      stdin: (async function* () {
        yield Buffer.from(journal.join('\n'));
      })(),
    } as Partial<Io> as Io;
    const clock = new SimulatedClock(Date.parse('2026-11-21T12:00:00Z'));
    const connect = () => Promise.reject(new Error('no call'));
    assert.equal(await command.run({ args, io, clock, signal: new AbortController().signal, connect }), 0);
    return { items: JSON.parse(stdout).items, stderr };
  }

  const cases: readonly (readonly [
    title: string,
    config: object,
    journal: readonly string[],
    expected: readonly (readonly [change: string, what: RegExp])[],
  ])[] = [
    ['an allowed request that stays allowed', {}, [asked(), granted()], []],
    ['a denied request that stays denied', {}, [denied('NotEligible', { who: { user: 'bob', groups: [] } })], []],
    [
      'a person who is in no allowed group any more',
      { allowedGroups: ['sre'] },
      [asked(), granted()],
      [['loses', /^access: NotEligible: .*allows \[sre\]/]],
    ],
    [
      'a person who is in a group that is allowed now',
      { allowedGroups: ['devs', 'qa'] },
      [denied('NotEligible', { who: { user: 'bob', groups: ['qa'] } })],
      [['gains', /^access for 1 h$/]],
    ],
    [
      'a person who gets access only after approvals',
      { allowedGroups: ['qa'], approvals },
      [denied('NotEligible', { who: { user: 'bob', groups: ['qa'] } })],
      [['gains', /^access for 1 h after 2 approvals$/]],
    ],
    [
      'a reason that the template requires now',
      { reason: { minLength: 1, pattern: '^INC-[0-9]+' } },
      [asked({ reason: 'please' })],
      [['loses', /^access: ReasonMismatch: /]],
    ],
    ['a reason that matches', { reason: { minLength: 1, pattern: '^INC-[0-9]+' } }, [asked({ reason: 'INC-42' })], []],
    ['a start that no window allows', {}, [asked({ startAt: '2026-11-21T09:30:00Z' })], [['loses', /InvalidStart/]]],
    ['an emergency', {}, [asked({ emergency: true, reason: 'it is all down' })], [['loses', /EmergencyNotAllowed/]]],
    [
      'an emergency that was denied',
      { emergency: { groups: ['devs'], maxDuration: '30m' } },
      [denied('EmergencyNotAllowed', { emergency: true, reason: 'it is all down' })],
      [['gains', /^access for 30 min$/]],
    ],
    [
      'a shorter maximum',
      { defaultDuration: '30m', maxDuration: '30m' },
      [asked(), granted({ time: '2026-11-21T09:00:01.5Z' })],
      [['loses', /^time: 30 min instead of 1 h$/]],
    ],
    ['a longer maximum', {}, [granted(), asked({ duration: '3h' })], [['gains', /^time: 3 h instead of 1 h$/]]],
    [
      'a grant that a vote shortened',
      {},
      [asked({ duration: '3h' }), granted({ votes: [{ voter: 'carol', max: '60m' }] })],
      [['gains', /^access with no approval: the request had 1$/]],
    ],
    [
      'approvals that the template requires now',
      { approvals },
      [asked(), granted({ votes: [{ voter: 'carol' }] })],
      [['loses', /^access with 1 approval: the request would need 2$/]],
    ],
    [
      'a line without a version of the template',
      {},
      [asked({ templateUid: undefined })],
      [['not decidable', /no version/]],
    ],
    [
      'a denial that no template decides',
      {},
      [denied('LimitReached')],
      [
        [
          'not decidable',
          /^it was denied with LimitReached, which can depend on facts that the journal does not have$/,
        ],
      ],
    ],
    [
      'such a denial of a request that the template denies too',
      { allowedGroups: ['sre'] },
      [denied('LimitReached')],
      [],
    ],
    [
      'a person with more groups than a line has',
      { allowedGroups: ['sre'] },
      [asked({ who: { user: 'alice', groups: many, groupCount: 40 } })],
      [['not decidable', /first groups/]],
    ],
    [
      'a person with many groups of whom the line has the allowed one',
      { allowedGroups: ['team-3'] },
      [asked({ who: { user: 'alice', groups: many, groupCount: 40 } })],
      [],
    ],
    [
      'a person who held the permissions already',
      {},
      [asked({ who: { user: 'root', groups: [] }, message: 'eligible by permissions already held' })],
      [['not decidable', /held the permissions/]],
    ],
  ];
  for (const [title, config, journal, expected] of cases) {
    it(`replays ${title}`, async () => {
      const { items } = await review(template(config), journal);
      assert.equal(items.length, expected.length, JSON.stringify(items));
      for (const [index, [change, what]] of expected.entries()) {
        assert.equal(items[index]?.change, change);
        assert.match(items[index]?.what ?? '', what);
      }
    });
  }

  it('counts the requests of one person in one row, and only those through the template', async () => {
    const of = (fields: object) => ({
      what: { operation: 'CREATE', kind: 'PodAccessRequest', namespace: 'payments', name: 'x', ...fields },
    });
    const journal = [
      ...Array.from({ length: 12 }, (_, index) => asked({ ...of({ name: `r${index}` }) })),
      asked({ dryRun: true }),
      asked({ template: 'other' }),
      asked(of({ namespace: 'other' })),
      asked(of({ kind: 'ExecAccessRequest' })),
      asked(of({ operation: 'UPDATE' })),
      'no line of a journal',
    ];
    const { items, stderr } = await review(template({ allowedGroups: ['sre'] }), journal);
    assert.deepEqual(
      items.map(({ who, requests, names }) => [who, requests, names.length]),
      [['alice', 12, 10]],
    );
    assert.equal(stderr, '12 requests; 0 of them without a difference\n');
  });

  it('replays only requests of the given time', async () => {
    const { items, stderr } = await review(template({ allowedGroups: ['sre'] }), [asked()], '--since', '2h');
    assert.deepEqual(items, []);
    assert.match(stderr, /no request through PodAccessTemplate payments\/shell/);
  });

  const refused: readonly (readonly [title: string, changed: object | string, message: RegExp, ...flags: string[]])[] =
    [
      ['another kind', { kind: 'Pod' }, /has no PodAccessTemplate or ExecAccessTemplate/],
      ['no YAML', '{', /cannot read the template/],
      ['a large file', 'x'.repeat(1024 * 1024 + 1), /larger than 1048576 bytes/],
      ['no name', { kind: 'PodAccessTemplate' }, /no metadata.name/],
      [
        'no namespace',
        { kind: 'PodAccessTemplate', metadata: { name: 'a' } },
        /no metadata.namespace; give it with -n/,
      ],
      ['another namespace', template(), /the template is in namespace payments, and -n is "x"/, '-n', 'x'],
      [
        'another schema',
        template({ maxGrants: 'x' }),
        /API server would deny the template: spec.accessConfig.maxGrants/,
      ],
      [
        'a spec that the webhook denies',
        template({ maxDuration: '1m' }),
        /the server would deny the template: InvalidDuration/,
      ],
    ];
  for (const [title, changed, message, ...flags] of refused) {
    it(`refuses a template with ${title}`, async () => {
      await assert.rejects(review(changed, [asked()], ...flags), message);
    });
  }

  it('refuses more requests than it keeps', async () => {
    const one = asked();
    await assert.rejects(review(template(), Array(100_001).fill(one)), /more than 100000 requests/);
  });
});
