import assert from 'node:assert/strict';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';
import * as objects from './objects.ts';

const [first, second] = ['2099-01-01T02:00:00Z', '2099-01-01T05:00:00Z'];
const request = (spec: object, status: object) =>
  objects.request(
    'a',
    { ready: true, grant: { expiresAt: first }, ...status },
    { requester: { username: 'bob' }, reason: 'INC-42', ...spec },
    { creationTimestamp: '2099-01-01T00:00:00Z' },
  );
const peers = { all: [{ name: 'peer' }] };
const template = (extension?: object) => objects.template({ maxDuration: '2h', approvals: peers, extension });
const allowed = { times: 2, total: '6h', approvals: 'Same' };
const waiting = (by: string, fields: object = {}) =>
  request({ extensions: [{ by, ...fields }] }, { extensions: [{ by, state: 'Pending', message: 'waiting' }] });

let cluster: ScriptedCluster | undefined;
const close = async (): Promise<void> => {
  await cluster?.close();
  cluster = undefined;
};
const open = async (found: Record<string, readonly object[]>): Promise<void> => {
  await close();
  cluster = await ScriptedCluster.open(found);
};
const printed = async (...argv: string[]): Promise<string> => (await cluster?.run(argv))?.stdout ?? '';

describe('an approver of an extension', () => {
  after(close);
  const extensible: readonly (readonly [extension: object | undefined, text: string])[] = [
    [undefined, 'none'],
    [allowed, '2 times, until access has lasted 6h, each after the same approvals as access'],
    [{ ...allowed, times: 1, approvals: 'None' }, 'once, until access has lasted 6h, without approvals'],
  ];
  for (const [extension, text] of extensible) {
    it(`sees how far the template lets access be extended: ${text}`, async () => {
      await open({ podaccessrequests: [waiting('5h')], podaccesstemplates: [template(extension)] });
      const stdout = await printed('show', 'a');
      assert.match(stdout, new RegExp(`^Longest: +2h\nExtensions: +${text}$`, 'm'));
    });
  }

  const outlooks: readonly (readonly [by: string, extension: object | undefined, end: RegExp, listed: string])[] = [
    ['3h', allowed, /2099-01-01T05:00:00Z \(in \S+\) at the latest$/, '3h more, until 2099-01-01T05:00:00Z'],
    ['5h', allowed, /2099-01-01T06:00:00Z \(in \S+\) at the latest$/, '5h more, until 2099-01-01T06:00:00Z'],
    ['5h', undefined, /NotExtendable: the template allows no extension; /, '5h more'],
  ];
  for (const [by, extension, end, listed] of outlooks) {
    it(`sees when access would end, and by when to decide: ${listed}`, async () => {
      await open({ podaccessrequests: [waiting(by)], podaccesstemplates: [template(extension)] });
      const stdout = await printed('show', 'a');
      assert.match(stdout, new RegExp(`^What Extension-1 would do\nAsked: +${by} more\nNew end: +${end.source}`, 'm'));
      const list = await printed('pending');
      assert.match(list, / ABOUT +FOR +DECIDE BY +YOU CAN +REASON$/m);
      assert.match(list, new RegExp(` Extension-1 +${listed} +${first} +approve, deny +`));
    });
  }

  it('sees the reason of the extension, and not that of the access', async () => {
    const podaccesstemplates = [template(allowed)];
    await open({ podaccesstemplates, podaccessrequests: [waiting('3h')] });
    assert.match(await printed('pending'), / approve, deny +-$/m);
    await open({ podaccesstemplates, podaccessrequests: [waiting('3h', { reason: 'still reading' })] });
    assert.match(await printed('pending'), / approve, deny +still reading$/m);
  });
});

describe('an approver', () => {
  after(close);
  const emergency = { groups: ['devs'], maxDuration: '30m', reviewWithin: '72h' };
  const template = objects.template({ defaultDuration: '1h', maxDuration: '2h', approvals: peers, emergency });
  const short = {
    ...template,
    metadata: { name: 'short', namespace: 'payments' },
    spec: { ...template.spec, podSpec: { containers: [], activeDeadlineSeconds: 1800 } },
  };
  const approval = { state: 'Pending' };
  const grant = { startsAt: '2099-01-01T00:10:00Z', expiresAt: '2099-01-01T00:40:00Z' };
  const waits = { ready: false, grant: undefined, approval };
  const owed = { grant, approval: { state: 'ReviewOwed', due: '2099-01-04T00:10:00Z' } };
  const rows: readonly (readonly [title: string, spec: object, status: object, listed: string, shown: string])[] = [
    ['the default duration', {}, waits, 'Access +1h +-', "Duration: +the template's default of 1 h"],
    [
      'what the template shortens',
      { duration: '9h' },
      waits,
      'Access +2h of 9h +-',
      "Duration: +requested 9 h, limited to the template's maximum of 2 h",
    ],
    [
      'that the pod ends before the asked duration',
      { duration: '90m', templateName: 'short' },
      waits,
      'Access +30m of 90m +-',
      'Duration: +30m, because its pod ends then .activeDeadlineSeconds.',
    ],
    ['the asked duration', { duration: '90m' }, waits, 'Access +1h30m +-', 'Duration: +1 h 30 min, as requested'],
    [
      'when an emergency ends, by when to review it, and in the words of the server what it was granted',
      { emergency: true },
      { ...owed, conditions: [{ type: 'AccessDurationsValid', status: 'True', message: '30 min, as requested' }] },
      `Review +until ${grant.expiresAt} +2099-01-04T00:10:00Z`,
      'Duration: +30 min, as requested',
    ],
  ];
  for (const [title, spec, status, listed, shown] of rows) {
    it(`sees ${title}`, async () => {
      await open({ podaccessrequests: [request(spec, status)], podaccesstemplates: [template, short] });
      assert.match(await printed('pending'), new RegExp(` ${listed} +approve, deny `));
      assert.match(await printed('show', 'a'), new RegExp(`^${shown}$`, 'm'));
    });
  }

  const namesPod = {
    ...request({ targetPod: 'web-0', startAt: '2099-01-02T00:00:00Z' }, waits),
    kind: 'ExecAccessRequest',
  };
  const execTemplate = { ...template, kind: 'ExecAccessTemplate' };
  it('and the requester see which pod was asked for', async () => {
    await open({ execaccessrequests: [namesPod], execaccesstemplates: [execTemplate] });
    for (const command of ['get', 'show']) assert.match(await printed(command, 'a'), /^Asked pod: +web-0$/m);
    assert.match(await printed('show', 'a'), /^Pod: +web-0, which must be a running pod of the workload, unchanged$/m);
    const listed = / Access \(pod web-0, from 2099-01-02T00:00:00Z\) +1h +- +approve, deny /;
    assert.match(await printed('pending'), listed);
  });

  it('and the requester see the review of an emergency in the words of the server', async () => {
    const message = 'emergency access without approvals; carol did not find the emergency justified: no need';
    const conditions = [{ type: 'AccessApproved', status: 'True', reason: 'Emergency', message }];
    const reviewed = {
      state: 'Reviewed',
      votes: [{ voter: 'bot', decision: 'Deny', onBehalfOf: 'carol', reason: 'no need' }],
    };
    const found = request({ emergency: true }, { grant, approval: reviewed, conditions });
    await open({ podaccessrequests: [found], podaccesstemplates: [template] });
    for (const command of ['get', 'show']) {
      const stdout = await printed(command, 'a');
      assert.match(stdout, new RegExp(`^Review: +Reviewed: ${message}$`, 'm'));
      assert.match(stdout, /^Votes: +bot: Deny for carol because "no need"$/m);
    }
  });

  it('sees that no one approved an emergency, and its maximum', async () => {
    await open({ podaccessrequests: [request({ emergency: true }, owed)], podaccesstemplates: [template] });
    const stdout = await printed('show', 'a');
    assert.match(stdout, /^Longest: +30m in an emergency, otherwise 2h\nExtensions: +none, because it is emergency/m);
    assert.match(stdout, /^Must approve: +no one; another person reviews emergency access$/m);
    assert.doesNotMatch(stdout, /peer/);
  });
});

describe('a person who reads a request that was extended', () => {
  after(close);
  const openRequest = (spec: object, status: object) => open({ podaccessrequests: [request(spec, status)] });

  it('sees until when, and apart from that who approved the access', async () => {
    await openRequest(
      { extensions: [{ by: '5h', reason: 'logs' }, { by: '1h' }] },
      {
        expiresAt: '2099-01-01T06:00:00Z',
        approval: { state: 'Approved', votes: [{ voter: 'carol', decision: 'Approve' }] },
        extensions: [
          { by: '5h', state: 'Granted', expiresAt: second, votes: ['v1', 'v2'] },
          { by: '1h', state: 'Granted', expiresAt: '2099-01-01T06:00:00Z' },
        ],
      },
    );
    for (const command of ['get', 'show']) {
      const stdout = await printed(command, 'a');
      assert.match(stdout, /^Approvals of access: +carol: Approve$/m);
      const lines = `by 5h, because "logs": Granted, until ${second}\n +by 1h: Granted, until 2099-01-01T06:00:00Z`;
      assert.match(stdout, new RegExp(`^Extensions: +${lines}$`, 'm'));
    }
  });

  it('sees which words are those of the requester', async () => {
    const message = 'VoteDenied: carol denied the extension: enough';
    await openRequest(
      { extensions: [{ by: '2m', reason: 'please' }] },
      { extensions: [{ by: '2m', state: 'Denied', message }] },
    );
    const stdout = await printed('get', 'a');
    assert.match(stdout, new RegExp(`^Extensions: +by 2m, because "please": Denied, ${message}$`, 'm'));
  });
});
