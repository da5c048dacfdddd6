import assert from 'node:assert/strict';
import { type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';

const request = (name: string, status: object = {}, spec: object = {}) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name, namespace: 'payments', uid: `uid-${name}`, resourceVersion: '1' },
  spec: { templateName: 'shell', requester: { username: 'alice' }, ...spec },
  status,
});
const grant = { expiresAt: '2099-01-01T00:00:00Z' };

describe('the client says what happened:', () => {
  let cluster: ScriptedCluster;
  const open = async (objects: Record<string, readonly object[]> = {}, fault?: Fault): Promise<void> => {
    await cluster?.close();
    cluster = await ScriptedCluster.open(objects, fault);
  };
  beforeEach(() => open());
  after(() => cluster.close());

  const lists: readonly (readonly [argv: readonly string[], nothing: string])[] = [
    [['templates'], 'no templates found'],
    [['list'], 'no requests found'],
    [['pending'], 'no request waits for you'],
    [['who'], 'no one has access'],
    [['revoke', '--user', 'alice'], 'no open or waiting request of alice'],
    [['inventory', 'status'], 'no entries found'],
  ];
  for (const [argv, nothing] of lists) {
    it(`where it searched, if it found nothing: ${argv.join(' ')}`, async () => {
      const one = await cluster.run(argv);
      assert.match(one.stderr, new RegExp(`^${nothing} in namespace payments; .*-A`));
      assert.match((await cluster.run([...argv, '-A'])).stderr, new RegExp(`^${nothing} in any namespace\\b`));
    });
  }

  const extensions: readonly (readonly [newEnd: string, by: string, text: string])[] = [
    ['2099-01-01T00:30:00Z', '30m', 'extended by 30m'],
    // The end is a whole second.
    ['2099-01-01T00:00:01Z', '1500ms', 'extended by 1500ms'],
    ['2099-01-01T00:20:00Z', '30m', 'extended by 20m instead of 30m'],
  ];
  for (const [expiresAt, by, text] of extensions) {
    it(`by how much access was extended: ${text}`, async () => {
      const before = request('a', { ready: true, grant });
      const extended = { by, state: 'Granted', expiresAt };
      const after = request('a', { ready: true, grant, expiresAt, extensions: [extended] }, { extensions: [{ by }] });
      await open({ podaccessrequests: [before] }, ({ method, path, watch }, answer) => {
        if (watch || method !== 'GET' || !path.endsWith('podaccessrequests')) return false;
        answer.list('7', [after]);
        return true;
      });
      const { code, stdout, stderr } = await cluster.run(['extend', 'a', '--by', by]);
      assert.deepEqual([code, stdout], [0, `podaccessrequest.crds.wizardofoz.co/a ${text}\n`], stderr);
      assert.match(stderr, new RegExp(`^access is open until ${expiresAt} `));
    });
  }

  const waiting = (all: readonly object[]) => request('a', { approval: { state: 'Pending', all } });
  const extending = request(
    'a',
    { ready: true, grant, extensions: [{ state: 'Pending' }] },
    { extensions: [{ by: '5m' }] },
  );
  const owed = request('a', { approval: { state: 'ReviewOwed' } }, { emergency: true });
  const [peer, security] = [
    { name: 'peer', have: 0, need: 1 },
    { name: 'security', have: 0, need: 2 },
  ];
  const votes: readonly (readonly [found: object, argv: readonly string[], text: string])[] = [
    [waiting([peer]), ['approve'], 'approved'],
    [waiting([peer, security]), ['approve'], 'approved; it needs at least 2 more approvals'],
    [
      waiting([
        { ...peer, have: 1 },
        { ...security, have: 1, need: 3 },
      ]),
      ['approve'],
      'approved; it needs at least 1 more approval',
    ],
    [waiting([peer, security]), ['deny'], 'denied'],
    [extending, ['approve'], 'Extension-1 approved'],
    [extending, ['deny'], 'Extension-1 denied'],
    [extending, ['deny', '--about', 'Access'], 'denied'],
    [owed, ['approve'], 'Review approved'],
  ];
  for (const [found, [command = '', ...flags], text] of votes) {
    it(`what was decided: ${text}`, async () => {
      await open({ podaccessrequests: [found] });
      const { stdout, stderr } = await cluster.run([command, 'a', ...flags]);
      assert.equal(stdout, `podaccessrequest.crds.wizardofoz.co/a ${text}\n`, stderr);
    });
  }

  it('which command helps, with the name by which the user called it', async () => {
    cluster.program = 'kubectl drawbridge';
    const { stderr } = await cluster.run(['get', 'none']);
    assert.match(stderr, /list requests with: kubectl drawbridge list -n payments$/m);
  });
});
