import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answering, type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { webhookDenial } from '../../support/webhook-denial.ts';
import { request, template } from './objects.ts';

const grant = { expiresAt: '2099-01-01T00:00:00Z' };
const objects = {
  podaccessrequests: [
    request('a', { ready: true, podName: 'a-access', grant }),
    request('b', { ready: true, podName: '--kubeconfig=/tmp/evil', grant }),
    request('c', { approval: { state: 'Claimable' } }),
  ],
  podaccesstemplates: [template({ rules: [{ apiGroups: ['metrics.k8s.io'], resources: ['pods'], verbs: ['get'] }] })],
};

describe('the client', () => {
  let cluster: ScriptedCluster;
  const open = async (fault?: Fault, given: Record<string, readonly object[]> = objects): Promise<void> => {
    await cluster?.close();
    cluster = await ScriptedCluster.open(given, fault);
  };
  beforeEach(() => open());
  after(() => cluster.close());

  const wrong: readonly (readonly string[])[] = [
    ['claim', 'c', '--timeout', 'abc'],
    ['claim', 'c', '-o', 'xml'],
    ['extend', 'a', '--by', '5m', '--timeout', 'abc'],
    ['extend', 'a', '--by', '5m', '-o', 'xml'],
    ['approve', 'c', '-o', 'xml'],
    ['deny', 'c', '-o', 'xml'],
    ['revoke', 'a', '-o', 'xml'],
    ['revoke', '--user', ''],
    ['list', '--as', ''],
    ['request', 'pod', 'shell', '--timeout', 'abc'],
  ];
  for (const argv of wrong) {
    it(`makes no call for a wrong command line: ${argv.map((word) => word || "''").join(' ')}`, async () => {
      const { code, stderr } = await cluster.run(argv);
      assert.equal(code, 2, stderr);
      assert.deepEqual(cluster.server.requests, []);
    });
  }

  const several: readonly (readonly string[])[] = [
    ['revoke', '--user', 'alice', '-A'],
    ['revoke', 'a', 'b', 'c'],
  ];
  for (const argv of several) {
    it(`goes on after a failure, and exits with its code: ${argv.join(' ')}`, async () => {
      await open(answering('/a', 403, webhookDenial(403, 'NotRequester', 'boom'), 'PATCH'));
      const { code, stdout, stderr } = await cluster.run(argv);
      assert.equal(code, 3);
      assert.equal(stderr, 'drawbridge: denied: NotRequester: boom\n');
      assert.equal(stdout.trimEnd().split('\n').length, 2);
      assert.equal(cluster.writes.length, 3);
    });
  }

  it('goes on with --user after a request that ended meanwhile, which is no failure', async () => {
    await open(answering('/a', 404, 'NotFound', 'PATCH'));
    const { code, stdout } = await cluster.run(['revoke', '--user', 'alice']);
    assert.deepEqual([code, stdout.trimEnd().split('\n').length], [0, 2]);
  });

  it('says that the server has yet to close revoked access, and lists it until then', async () => {
    assert.match((await cluster.run(['revoke', 'a'])).stdout, /revocation requested; the server closes the access\n/);
    await open(undefined, { podaccessrequests: [request('a', { ready: true, grant }, { revoked: true })] });
    assert.match((await cluster.run(['who'])).stdout, /^alice +Ending /m);
    const { code, stderr } = await cluster.run(['exec', 'a']);
    assert.deepEqual([code, cluster.ran], [5, []]);
    assert.match(stderr, /a ends: revoked; the server has not closed the access yet/);
  });

  const forms: readonly (readonly [argv: readonly string[], kind: string])[] = [
    [['approve', 'c'], 'AccessVote'],
    [['deny', 'c'], 'AccessVote'],
    [['revoke', 'a'], 'PodAccessRequest'],
    [['extend', 'a', '--by', '5m', '--no-wait'], 'PodAccessRequest'],
    [['revoke', 'a', 'b'], 'List'],
    [['who', '--journal', '/dev/null'], 'List'],
  ];
  for (const [argv, kind] of forms) {
    it(`prints one JSON document with -o json: ${argv.join(' ')}`, async () => {
      const { stdout, stderr } = await cluster.run([...argv, '-o', 'json']);
      assert.equal(JSON.parse(stdout).kind, kind, stderr);
      assert.doesNotMatch((await cluster.run([...argv, '-o', 'name'])).stdout, /^$\n|\s\w+\n/m);
    });
  }

  it('says who entered pods, also through the gateway', async () => {
    const line = (fields: object): string =>
      JSON.stringify({
        chain: 'c',
        time: '2026-11-21T09:00:00Z',
        who: { user: 'alice' },
        what: { operation: 'CONNECT', namespace: 'payments', name: 'a-access' },
        ...fields,
      });
    const gateway = { user: 'system:serviceaccount:db:gateway' };
    const lines = [
      line({ event: 'exec', verdict: 'allowed' }),
      line({ event: 'exec', verdict: 'allowed', who: gateway }),
      line({ event: 'session', verdict: 'opened', stream: 'attach' }),
      line({ event: 'session', verdict: 'ended', stream: 'attach' }),
      line({ event: 'session', verdict: 'recorded' }),
      line({ event: 'session', verdict: 'denied' }),
      line({ event: 'session', verdict: 'denied', what: { operation: 'GET', namespace: 'payments', name: 'id' } }),
      line({ event: 'grant', verdict: 'granted' }),
    ];
    const directory = await mkdtemp(join(tmpdir(), 'who-'));
    try {
      const file = join(directory, 'journal');
      await writeFile(file, lines.join('\n'));
      const { stdout } = await cluster.run(['who', '--journal', file]);
      const rows = (stdout.split('\n\n')[1] ?? '').trimEnd().split('\n').slice(1);
      assert.deepEqual(
        rows.map((row) => row.split(/ {2,}/).slice(1, 3)),
        [
          ['alice', 'exec allowed'],
          [gateway.user, 'exec allowed'],
          ['alice', 'attach opened'],
        ],
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('prints the versions as JSON', async () => {
    await open(answering('/version', 200, { gitVersion: 'v1.34.0' }));
    const { stdout } = await cluster.run(['version', '-o', 'json']);
    assert.equal(JSON.parse(stdout).kubernetes, 'v1.34.0');
  });

  it('prints its own version at once, also if the API server does not answer', async () => {
    let printed = '';
    await open(({ path }, answer) => {
      if (path !== '/version') return false;
      assert.match(printed, /^drawbridge /);
      answer.status(403, 'Forbidden');
      return true;
    });
    const signal = new AbortController().signal;
    const { code, stdout, stderr } = await cluster.run(['version'], signal, (text) => {
      printed += text;
    });
    assert.match(stdout, /^drawbridge \d+\.\d+\.\d+\n$/);
    assert.notEqual(stderr, '');
    assert.equal(code, 3);
  });

  const unread: readonly (readonly [what: string, path: RegExp, code: number, exit: number, stderr: RegExp])[] = [
    ['the template', /podaccesstemplates\/shell$/, 403, 0, /template shell does not exist, or you may not read it/],
    ['the template', /podaccesstemplates\/shell$/, 401, 1, /does not accept your credentials/],
    ['other requests', /podaccessrequests$/, 403, 0, /^not checked: other requests of this person: scripted 403$/m],
    ['other requests', /podaccessrequests$/, 401, 1, /does not accept your credentials/],
  ];
  for (const [what, path, status, exit, line] of unread) {
    it(`exits with ${exit} if show cannot read ${what}: ${status}`, async () => {
      await open(answering(path, status, status === 401 ? 'Unauthorized' : 'Forbidden'));
      const { code, stderr } = await cluster.run(['show', 'c']);
      assert.equal(code, exit, stderr);
      assert.match(stderr, line);
    });
  }

  const refusals: readonly (readonly [status: number, code: number, stderr: RegExp])[] = [
    [401, 1, /does not accept your credentials; they may have expired: log in again/],
    [403, 3, /^drawbridge: denied: /m],
  ];
  for (const [status, exit, line] of refusals) {
    it(`ends a watch that the API server answers with ${status}`, async function () {
      this.timeout(20_000);
      await open(({ watch }, answer) => {
        if (!watch) return false;
        answer.status(status);
        return true;
      });
      const { code, stderr } = await cluster.run(['watch', 'c']);
      assert.equal(code, exit, stderr);
      assert.match(stderr, line);
    });
  }

  it('prints a request that is gone as Revoked, with the time of its deletion', async () => {
    await open(({ watch, path }, answer) => {
      if (!watch) return false;
      answer.open();
      if (path.endsWith('podaccessrequests')) {
        const { metadata, ...rest } = request('a', { ready: true, grant });
        answer.event('DELETED', { ...rest, metadata: { ...metadata, resourceVersion: '8' } });
      }
      return true;
    });
    const stop = new AbortController();
    const states: string[] = [];
    const { code, stdout } = await cluster.run(['list', '-w'], stop.signal, (text) => {
      states.push(...(/^a +pod +shell +(\w+)/m.exec(text) ?? []).slice(1));
      if (states.length === 2) stop.abort();
    });
    assert.deepEqual([code, states], [130, ['Open', 'Revoked']], stdout);
  });

  it('says when access ends without the extension, and how to see its state', async () => {
    const { code, stdout, stderr } = await cluster.run(['extend', 'a', '--by', '5m', '--no-wait']);
    assert.deepEqual([code, stdout], [0, 'podaccessrequest.crds.wizardofoz.co/a extension requested\n']);
    assert.match(
      stderr,
      /^access is open until 2099-01-01T00:00:00Z \(in \S+\) without the extension\. To see its state: drawbridge get pod\/a -n payments\n$/,
    );
  });

  it('says who can decide on a request of their own, which no permission lets them', async () => {
    const own = request('own', { approval: { state: 'Pending' } });
    await open(answering('accessvotes', 403, 'Forbidden', 'POST'), { podaccessrequests: [own] });
    const { code, stderr } = await cluster.run(['approve', 'own']);
    assert.equal(code, 3);
    assert.equal(
      stderr,
      'drawbridge: denied: own is your own request, which only others can decide; to see who: drawbridge approvers pod/shell -n payments\n',
    );
  });

  it('gives kubectl the pod as one word that is no flag', async () => {
    assert.equal((await cluster.run(['exec', 'b', '--', 'ls'])).code, 0);
    assert.deepEqual(cluster.ran, [
      ['kubectl', 'exec', '-i', '--namespace=payments', 'pod/--kubeconfig=/tmp/evil', '--', 'ls'],
    ]);
  });

  it('quotes the command that runs kubectl elsewhere', async () => {
    cluster.startError = Object.assign(new Error('spawn kubectl ENOENT'), { code: 'ENOENT' });
    const { code, stderr } = await cluster.run(['exec', 'b', '--', 'sh', '-c', 'ls /tmp; id']);
    assert.equal(code, 1);
    assert.match(stderr, /install it, or run on another machine: kubectl exec .* -- sh -c 'ls \/tmp; id'$/m);
  });

  it('prints whole names, which the next command needs', async () => {
    const name = 'n'.repeat(100);
    await open(undefined, { podaccessrequests: [request(name)] });
    assert.match((await cluster.run(['list'])).stdout, new RegExp(`^${name} `, 'm'));
  });

  for (const [argv, list] of [
    [['approve', 'none'], 'requests that wait for you: drawbridge pending'],
    [['deny', 'none'], 'requests that wait for you: drawbridge pending'],
    [['show', 'none'], 'requests: drawbridge list --everyone'],
    [['revoke', 'none'], 'requests: drawbridge list --everyone'],
  ] as const) {
    it(`names the list that has the requests of ${argv[0]}`, async () => {
      const { code, stderr } = await cluster.run([...argv, '--as=bob']);
      assert.equal(code, 1);
      assert.ok(stderr.endsWith(`; to list ${list} -n payments --as=bob\n`), stderr);
    });
  }

  it('completes requests that have not ended, for a command that cannot use others', async () => {
    const ended = { how: 'Expired', reason: 'Expired' };
    const found = [request('ended', { ended }), request('waits'), request('ends', {}, { revoked: true })];
    await open(answering('execaccessrequests', 403, 'Forbidden'), { podaccessrequests: found });
    const complete = async (...argv: string[]): Promise<string> => (await cluster.run(['__complete', ...argv])).stdout;
    for (const command of ['revoke', 'claim', 'extend', 'exec', 'use', 'watch'])
      assert.equal(await complete(command, ''), 'waits\tpod\n:4\n', command);
    assert.equal(await complete('get', ''), 'ended\tpod\nwaits\tpod\nends\tpod\n:4\n');
  });

  it('completes namespaces and contexts, of which the flag has no value yet', async () => {
    await open(undefined, { namespaces: [{ metadata: { name: 'payments' } }, { metadata: { name: 'fleet' } }] });
    const complete = async (...argv: string[]): Promise<string> => (await cluster.run(['__complete', ...argv])).stdout;
    assert.equal(await complete('list', '-n', ''), 'payments\nfleet\n:4\n');
    assert.equal(await complete('list', '--namespace', 'f'), 'fleet\n:4\n');
    assert.equal(await complete('list', '--context', ''), 'one\nother\n:4\n');
    assert.equal(await complete('list', '--context=o'), '--context=one\n--context=other\n:4\n');
  });

  it('says what to do about objects of another shape', async () => {
    await open(undefined, { podaccessrequests: [request('a', { approval: { votes: 'x' } })] });
    const { code, stderr } = await cluster.run(['get', 'a']);
    assert.equal(code, 1);
    assert.match(stderr, /^drawbridge: the API server sent an object that this client cannot read \(.*\);/);
  });

  it('says what the components of an entry read and write, except in the narrow table', async () => {
    const entry = { metadata: { name: 'prod' }, status: { components: [{ name: 'dns', state: 'Done' }] } };
    const spec = { reads: ['/status/outputs/network'], kubeconfig: 'read' };
    const registrations = [{ metadata: { name: 'dns' }, spec }];
    await open(undefined, { clusterinventories: [entry], componentreconcilers: registrations, reconcileruns: [] });
    const [found] = JSON.parse((await cluster.run(['inventory', 'why', 'prod', '-o', 'json'])).stdout).items;
    assert.deepEqual(found.reads, ['/status/outputs/network', '/status/outputs/kubeconfig']);
    assert.deepEqual(found.writes, ['/status/outputs/dns']);
    await open(answering('componentreconcilers', 403, 'Forbidden'), { clusterinventories: [entry], reconcileruns: [] });
    assert.equal((await cluster.run(['inventory', 'why', 'prod'])).stderr, '');
    const { code, stderr } = await cluster.run(['inventory', 'why', 'prod', '-o', 'wide']);
    assert.deepEqual([code, stderr], [0, 'note: what the components read and write is unknown: scripted 403\n']);
  });

  it('verifies a journal against the heads of the cluster that the flags select', async () => {
    await open(undefined, { configmaps: [] });
    const { code, stderr } = await cluster.run(['audit', 'verify', '/dev/null', '--context=other', '--as=bob']);
    assert.equal(code, 2);
    assert.match(stderr, /ConfigMap drawbridge-system\/\S+ or .* not found/);
    assert.equal(cluster.server.requests[0]?.headers['impersonate-user'], 'bob');
  });

  it('takes no flag that audit verify would ignore', async () => {
    const { code, stderr } = await cluster.run(['audit', 'verify', '/dev/null', '-A']);
    assert.equal(code, 2);
    assert.match(stderr, /audit verify takes no --all-namespaces; omit it/);
  });
});
