import assert from 'node:assert/strict';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';

const [first, second] = ['2099-01-01T02:00:00Z', '2099-01-01T05:00:00Z'];
const request = (spec: object, status: object) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: {
    name: 'a',
    namespace: 'payments',
    uid: 'uid-a',
    resourceVersion: '1',
    creationTimestamp: '2099-01-01T00:00:00Z',
  },
  spec: { templateName: 'shell', requester: { username: 'bob' }, reason: 'INC-42', ...spec },
  status: { ready: true, grant: { expiresAt: first }, ...status },
});
const template = (extension?: object) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'shell', namespace: 'payments', uid: '5f2c9a1b-0000', generation: 3 },
  spec: {
    accessConfig: { maxDuration: '2h', approvals: { all: [{ name: 'peer' }] }, ...(extension ? { extension } : {}) },
  },
});
const allowed = { times: 2, total: '6h', approvals: 'Same' };
const waiting = (by: string, fields: object = {}) =>
  request({ extensions: [{ by, ...fields }] }, { extensions: [{ by, state: 'Pending', message: 'waiting' }] });

describe('an approver of an extension', () => {
  let cluster: ScriptedCluster;
  const open = async (objects: Record<string, readonly object[]>): Promise<void> => {
    await cluster?.close();
    cluster = await ScriptedCluster.open(objects);
  };
  after(() => cluster.close());

  const extensible: readonly (readonly [extension: object | undefined, text: string])[] = [
    [undefined, 'none'],
    [allowed, '2 times, until access has lasted 6h, each after the same approvals as access'],
    [{ ...allowed, times: 1, approvals: 'None' }, 'once, until access has lasted 6h, without approvals'],
  ];
  for (const [extension, text] of extensible) {
    it(`sees how far the template lets access be extended: ${text}`, async () => {
      await open({ podaccessrequests: [waiting('5h')], podaccesstemplates: [template(extension)] });
      const { stdout } = await cluster.run(['show', 'a']);
      assert.match(stdout, new RegExp(`^Longest: +2h\nExtensions: +${text}$`, 'm'));
    });
  }

  const outlooks: readonly (readonly [by: string, extension: object | undefined, end: RegExp, listed: string])[] = [
    ['3h', allowed, /2099-01-01T05:00:00Z \(in \S+\) at the latest$/, '3h more, until 2099-01-01T05:00:00Z'],
    [
      '5h',
      allowed,
      /2099-01-01T06:00:00Z \(in \S+\) at the latest, because the template allows 6h in total$/,
      '5h more, until 2099-01-01T06:00:00Z',
    ],
    [
      '5h',
      undefined,
      /none, because the server would refuse it \(NotExtendable\): /,
      '5h more, but the server would refuse it: see show',
    ],
  ];
  for (const [by, extension, end, listed] of outlooks) {
    it(`sees when access would end, and by when to decide: ${listed}`, async () => {
      await open({ podaccessrequests: [waiting(by)], podaccesstemplates: [template(extension)] });
      const { stdout } = await cluster.run(['show', 'a']);
      assert.match(stdout, new RegExp(`^What Extension-1 would do\nAsked: +${by} more\nNew end: +${end.source}`, 'm'));
      const list = (await cluster.run(['pending'])).stdout;
      assert.match(list, / ABOUT +FOR +DECIDE BY +YOU CAN +REASON$/m);
      assert.match(list, new RegExp(` Extension-1 +${listed} +${first} +approve, deny +`));
    });
  }

  it('sees the reason of the extension, and not that of the access', async () => {
    const objects = { podaccesstemplates: [template(allowed)] };
    await open({ ...objects, podaccessrequests: [waiting('3h')] });
    assert.match((await cluster.run(['pending'])).stdout, / approve, deny +-$/m);
    await open({ ...objects, podaccessrequests: [waiting('3h', { reason: 'still reading' })] });
    assert.match((await cluster.run(['pending'])).stdout, / approve, deny +still reading$/m);
  });
});

describe('an approver', () => {
  let cluster: ScriptedCluster;
  after(() => cluster.close());
  const emergency = { groups: ['devs'], maxDuration: '30m', reviewWithin: '72h' };
  const template = {
    kind: 'PodAccessTemplate',
    metadata: { name: 'shell', namespace: 'payments' },
    spec: {
      accessConfig: { defaultDuration: '1h', maxDuration: '2h', approvals: { all: [{ name: 'peer' }] }, emergency },
    },
  };
  const approval = { state: 'Pending' };
  const open = { startsAt: '2099-01-01T00:10:00Z', expiresAt: '2099-01-01T00:40:00Z' };
  const waits = { ready: false, grant: undefined, approval };
  const owed = { grant: open, approval: { state: 'ReviewOwed', until: '2099-01-04T00:10:00Z' } };
  const rows: readonly (readonly [title: string, spec: object, status: object, listed: string, shown: string])[] = [
    ['the default duration', {}, waits, 'Access +1h +-', 'Duration: +1h, the default of the template'],
    ['what the template shortens', { duration: '9h' }, waits, 'Access +2h of 9h +-', 'Duration: +9h, shortened to 2h'],
    ['the asked duration', { duration: '90m' }, waits, 'Access +1h30m +-', 'Duration: +90m'],
    [
      'what an emergency was granted, when it ends, and by when to review it',
      { emergency: true, duration: '9h' },
      owed,
      `Review +30m of 9h, until ${open.expiresAt} +2099-01-04T00:10:00Z`,
      'Duration: +9h, shortened to 30m',
    ],
  ];
  for (const [title, spec, status, listed, shown] of rows) {
    it(`sees ${title}`, async () => {
      await cluster?.close();
      const objects = { podaccessrequests: [request(spec, status)], podaccesstemplates: [template] };
      cluster = await ScriptedCluster.open(objects);
      assert.match((await cluster.run(['pending'])).stdout, new RegExp(` ${listed} +approve, deny `));
      assert.match((await cluster.run(['show', 'a'])).stdout, new RegExp(`^${shown}$`, 'm'));
    });
  }

  const namesPod = {
    ...request({ targetPod: 'web-0', startAt: '2099-01-02T00:00:00Z' }, waits),
    kind: 'ExecAccessRequest',
  };
  const execTemplate = { ...template, kind: 'ExecAccessTemplate' };
  const noPod = 'access opens only in a running pod of the workload';
  const pod = (phase: string) => ({
    kind: 'Pod',
    metadata: { name: 'web-0', namespace: 'payments' },
    status: { phase },
  });
  const asked: readonly (readonly [title: string, pods: readonly object[], text: string])[] = [
    ['runs', [pod('Running')], 'web-0'],
    ['does not run', [pod('Pending')], `web-0, which is Pending now; ${noPod}`],
    ['does not exist', [], `web-0, which does not exist now; ${noPod}`],
  ];
  for (const [title, pods, text] of asked) {
    it(`and the requester see which pod was asked for, and that it ${title}`, async () => {
      await cluster?.close();
      const objects = { execaccessrequests: [namesPod], execaccesstemplates: [execTemplate], pods };
      cluster = await ScriptedCluster.open(objects);
      for (const command of ['get', 'show'])
        assert.match((await cluster.run([command, 'a'])).stdout, new RegExp(`^Asked pod: +${text}$`, 'm'));
      assert.match(
        (await cluster.run(['show', 'a'])).stdout,
        /^Pod: +web-0, a running pod of the workload, unchanged$/m,
      );
      const listed = / Access \(pod web-0, from 2099-01-02T00:00:00Z\) +1h +- +approve, deny /;
      assert.match((await cluster.run(['pending'])).stdout, listed);
    });
  }

  it('who may not read the pod sees which one was asked for', async () => {
    await cluster?.close();
    const objects = { execaccessrequests: [namesPod], execaccesstemplates: [execTemplate] };
    cluster = await ScriptedCluster.open(objects, ({ path }, answer) => {
      if (!path.includes('/pods/')) return false;
      answer.json(403, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'Forbidden', code: 403 });
      return true;
    });
    assert.match((await cluster.run(['show', 'a'])).stdout, /^Asked pod: +web-0$/m);
  });

  const until = '2099-01-04T00:10:00Z';
  const vote = { voter: 'carol', decision: 'Deny', reason: 'no emergency' };
  const reviews: readonly (readonly [title: string, approval: object, line: RegExp])[] = [
    ['is owed', { state: 'ReviewOwed', until }, /^Review: +another person must make it by 2099-01-04T00:10:00Z \(/m],
    ['is overdue', { state: 'ReviewOverdue', until }, /^Review: +overdue since 2099-01-04T00:10:00Z \(/m],
    [
      'found no emergency',
      { state: 'Reviewed', votes: [vote] },
      /^Review: +carol: not justified because "no emergency"$/m,
    ],
    [
      'found an emergency',
      { state: 'Reviewed', votes: [{ voter: 'carol', decision: 'Approve' }] },
      /^Review: +carol: justified$/m,
    ],
    ['has no vote', { state: 'Reviewed' }, /^Review: +none is owed any more$/m],
  ];
  for (const [title, reviewed, line] of reviews) {
    it(`and the requester see that the review of an emergency ${title}`, async () => {
      await cluster?.close();
      const owedRequest = request({ emergency: true }, { grant: open, approval: reviewed });
      cluster = await ScriptedCluster.open({ podaccessrequests: [owedRequest], podaccesstemplates: [template] });
      for (const command of ['get', 'show']) {
        const { stdout } = await cluster.run([command, 'a']);
        assert.match(stdout, line);
        assert.doesNotMatch(stdout, /^Approvals/m);
      }
    });
  }

  for (const [title, over, spec] of [
    ['the emergency maximum instead of a longer default', {}, { emergency: true }],
    ['the time after which the kubelet ends the pod', { podSpec: { activeDeadlineSeconds: 1800 } }, {}],
  ] as const) {
    it(`sees ${title}`, async () => {
      await cluster?.close();
      const limited = { ...template, spec: { ...template.spec, ...over } };
      cluster = await ScriptedCluster.open({
        podaccessrequests: [request(spec, waits)],
        podaccesstemplates: [limited],
      });
      assert.match((await cluster.run(['show', 'a'])).stdout, /^Duration: +30m, the most that the template allows$/m);
    });
  }

  it('sees that no one approved an emergency, and its maximum', async () => {
    await cluster.close();
    const found = request({ emergency: true }, owed);
    cluster = await ScriptedCluster.open({ podaccessrequests: [found], podaccesstemplates: [template] });
    const { stdout } = await cluster.run(['show', 'a']);
    assert.match(stdout, /^Longest: +30m in an emergency, otherwise 2h\nExtensions: +none, because it is emergency/m);
    assert.match(stdout, /^Must approve: +no one; another person reviews emergency access$/m);
    assert.doesNotMatch(stdout, /peer/);
  });
});

describe('a person who reads a request that was extended', () => {
  let cluster: ScriptedCluster;
  after(() => cluster.close());
  const vote = (uid: string, spec: object) => ({ kind: 'AccessVote', metadata: { name: uid, uid }, spec });
  const votes = [
    vote('v1', { voter: { username: 'carol' }, max: '3h' }),
    vote('v2', { voter: { username: 'erin' } }),
    vote('v3', { voter: { username: 'mallory' } }),
  ];
  const extended = (by: string) =>
    request(
      { extensions: [{ by, reason: 'logs' }, { by: '1h' }] },
      {
        expiresAt: '2099-01-01T06:00:00Z',
        approval: { state: 'Approved', votes: [{ voter: 'carol', decision: 'Approve' }] },
        extensions: [
          { by, state: 'Granted', expiresAt: second, votes: ['v1', 'v2'] },
          { by: '1h', state: 'Granted', expiresAt: '2099-01-01T06:00:00Z' },
        ],
      },
    );
  const lines = (begin: string): RegExp =>
    new RegExp(`^Extensions: +${begin}\n +by 1h: Granted, until 2099-01-01T06:00:00Z$`, 'm');

  it('sees how much of it was granted, and who approved it', async () => {
    cluster = await ScriptedCluster.open({ podaccessrequests: [extended('5h')], accessvotes: votes });
    const who = 'approved by carol \\(at most 3h\\) and erin';
    for (const command of ['get', 'show'])
      assert.match(
        (await cluster.run([command, 'a'])).stdout,
        lines(`by 5h, because "logs": Granted only 3h, until ${second}, ${who}`),
      );
    await cluster.close();
    cluster = await ScriptedCluster.open({ podaccessrequests: [extended('3h')], accessvotes: votes });
    assert.match(
      (await cluster.run(['get', 'a'])).stdout,
      lines(`by 3h, because "logs": Granted, until ${second}, ${who}`),
    );
  });

  it('sees which words are those of the requester', async () => {
    await cluster.close();
    const message = 'VoteDenied: carol denied the extension: enough';
    const refused = request(
      { extensions: [{ by: '2m', reason: 'please' }] },
      { extensions: [{ by: '2m', state: 'Refused', message }] },
    );
    cluster = await ScriptedCluster.open({ podaccessrequests: [refused] });
    const { stdout } = await cluster.run(['get', 'a']);
    assert.match(stdout, new RegExp(`^Extensions: +by 2m, because "please": Refused, ${message}$`, 'm'));
  });

  it('sees the amount also without the permission to list votes', async () => {
    await cluster.close();
    cluster = await ScriptedCluster.open({ podaccessrequests: [extended('5h')] }, ({ path }, answer) => {
      if (!path.endsWith('accessvotes')) return false;
      answer.status(403, 'Forbidden');
      return true;
    });
    const { code, stdout } = await cluster.run(['get', 'a']);
    assert.equal(code, 0);
    assert.match(stdout, /^Approvals of access: +carol: Approve$/m);
    assert.match(stdout, lines(`by 5h, because "logs": Granted only 3h, until ${second}, approved by 2 people`));
  });
});
