import assert from 'node:assert/strict';
import type { Answer } from '../../support/scripted-apiserver.ts';
import { answering, type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { webhookDenial } from '../../support/webhook-denial.ts';
import * as objects from './objects.ts';

const pending = { approval: { state: 'Pending' } };
const request = (name: string, spec: object = {}, status: object = pending) =>
  objects.request(
    name,
    status,
    { requester: { username: 'bob' }, ...spec },
    { creationTimestamp: '2026-11-21T09:00:00Z' },
  );
const template = (changedAt: string, fields: object = {}, accessConfig: object = {}) =>
  objects.template(accessConfig, { spec: { accessConfig, author: { username: 'root', time: changedAt } }, ...fields });
const [earlier, later] = ['2026-11-21T08:59:00Z', '2026-11-21T09:01:00Z'];

describe('a voter', () => {
  let cluster: ScriptedCluster;
  const open = async (objects: Record<string, readonly object[]>, fault?: Fault): Promise<void> => {
    await cluster?.close();
    cluster = await ScriptedCluster.open(objects, fault);
  };
  const openTemplate = (changedAt: string, fault?: Fault): Promise<void> =>
    open({ podaccessrequests: [request('a')], podaccesstemplates: [template(changedAt)] }, fault);
  after(() => cluster.close());
  /** Of the votes that the client created. */
  const templates = () => cluster.writes.map(({ body }) => (body as { spec: { template?: object } }).spec.template);

  const voted = { kind: 'PodAccessTemplate', name: 'shell', uid: '5f2c9a1b-0000', generation: 3 };
  const accepted: readonly (readonly [title: string, changedAt: string, argv: readonly string[], named?: object])[] = [
    ['approves the version that the client read', earlier, ['approve', 'a'], voted],
    ['approves the version that show printed', later, ['approve', 'a', '--template-version', '3.5f2c9a1b'], voted],
    ['denies whatever the version is', later, ['deny', 'a']],
    ['reviews whatever the version is', later, ['approve', 'a', '--about', 'Review']],
  ];
  for (const [title, changedAt, argv, named] of accepted) {
    it(title, async () => {
      await openTemplate(changedAt);
      const { code, stderr } = await cluster.run(argv);
      assert.equal(code, 0, stderr);
      assert.deepEqual(templates(), [named]);
    });
  }

  const refused: readonly (readonly [title: string, argv: readonly string[], message: RegExp])[] = [
    [
      'does not approve a template that was changed after the request, and that they may not have seen',
      ['approve', 'a'],
      /template shell was changed at 2026-11-21T09:01:00Z, after the request was created; read it with: drawbridge show pod\/a -n payments; then approve with --template-version 3\.5f2c9a1b$/m,
    ],
    [
      'does not approve another version than the one they saw',
      ['approve', 'a', '--template-version', '2.5f2c9a1b'],
      /template shell has changed: --template-version is "2\.5f2c9a1b", and it is now 3\.5f2c9a1b; read it with: drawbridge show/,
    ],
    [
      'does not approve another request of the same name',
      ['approve', 'a', '--template-version', '3.5f2c9a1b', '--uid', 'another'],
      /a is now another request \(uid .*\); look at it before you decide/,
    ],
    ['does not deny another request of the same name', ['deny', 'a', '--uid', 'another'], /a is now another request/],
    [
      'does not approve a new template of the same name and generation',
      ['approve', 'a', '--template-version', '3.aaaaaaaa'],
      /template shell has changed/,
    ],
  ];
  for (const [title, argv, message] of refused) {
    it(title, async () => {
      await openTemplate(later);
      const { code, stderr } = await cluster.run(argv);
      assert.equal(code, 1);
      assert.match(stderr, message);
      assert.deepEqual(cluster.writes, []);
    });
  }

  it('learns that a request is their own, also if its template was changed after it', async () => {
    const own = request('a', { requester: { username: 'alice' } });
    await open({ podaccessrequests: [own], podaccesstemplates: [template(later)] });
    const { code, stderr } = await cluster.run(['approve', 'a']);
    assert.equal(code, 3);
    assert.match(stderr, /a is your own request, .* drawbridge approvers pod\/shell -n payments$/m);
    assert.deepEqual(cluster.writes, []);
  });

  it('learns when access that they approved is to start', async () => {
    const later = request('a', { startAt: '2099-06-01T08:00:00Z' });
    await open({ podaccessrequests: [later], podaccesstemplates: [template(earlier)] });
    const { stdout } = await cluster.run(['approve', 'a']);
    assert.match(stdout, / approved; it asks for access from 2099-06-01T08:00:00Z$/m);
  });

  const grant = { expiresAt: '2099-01-01T00:00:00Z' };
  const ready = { ready: true, grant, approval: { state: 'Granted' } };
  const gateway = { ...ready, grant: { ...grant, session: { via: 'Gateway' } } };
  const owed = { ...ready, approval: { state: 'ReviewOwed' } };
  for (const [title, argv, status, result] of [
    ['access that waits', [], pending, 'denied'],
    ['open access', [], ready, 'denied; the server closes the access'],
    ['open access by the gateway', [], gateway, 'denied; the server closes the access; the gateway ends its sessions'],
    ['an emergency', ['--about', 'Review'], owed, 'Review denied; the server closes the access'],
    ['the access of an emergency', ['--about', 'Access'], owed, 'denied; the server closes the access'],
    ['an extension', ['--about', 'Extension-1'], ready, 'Extension-1 denied'],
  ] as const) {
    it(`sees what becomes of the access when they deny ${title}`, async () => {
      await open({ podaccessrequests: [request('a', {}, status)], podaccesstemplates: [template(earlier)] });
      const { stdout, stderr } = await cluster.run(['deny', 'a', ...argv]);
      assert.equal(stdout, `podaccessrequest.crds.wizardofoz.co/a ${result}\n`, stderr);
    });
  }

  for (const decision of ['approve', 'deny'])
    it(`must say what they ${decision} while emergency access is open, because it has only one review`, async () => {
      await open({ podaccessrequests: [request('a', { emergency: true }, owed)] });
      const { code, stderr } = await cluster.run([decision, 'a']);
      const commands = `to review it now: drawbridge ${decision} pod/a -n payments --about Review; to end only the access: drawbridge deny pod/a -n payments --about Access`;
      assert.equal(code, 2);
      assert.ok(
        stderr.endsWith(`the emergency access a is still open, and is reviewed only once; ${commands}\n`),
        stderr,
      );
      assert.deepEqual(cluster.writes, []);
    });

  it('sees the start windows of the template, which an emergency does not need', async () => {
    const windows = [{ days: ['Mon', 'Tue'], from: '08:00', to: '18:00', timeZone: 'UTC' }];
    const used = { podaccesstemplates: [template(earlier, {}, { start: { windows } })] };
    await open({ ...used, podaccessrequests: [request('a')] });
    assert.match((await cluster.run(['show', 'a'])).stdout, /^Start: +only on Mon, Tue 08:00 to 18:00 UTC$/m);
    await open({ ...used, podaccessrequests: [request('a', { emergency: true })] });
    assert.doesNotMatch((await cluster.run(['show', 'a'])).stdout, /^Start:/m);
  });

  it('is told that the template is not ready', async () => {
    const ready = { type: 'Ready', status: 'False', reason: 'PodReachesTooFar', message: 'the pod adds "SYS_PTRACE"' };
    const status = { ready: false, conditions: [ready] };
    const waiting = { ready: false, conditions: [], approval: { state: 'Pending', all: [] } };
    const why = 'PodReachesTooFar: the pod adds "SYS_PTRACE"';
    await open({
      podaccessrequests: [request('a', {}, waiting)],
      podaccesstemplates: [template(earlier, { status })],
    });
    const shown = await cluster.run(['show', 'a']);
    assert.ok(shown.stdout.includes(`Not ready:`) && shown.stdout.includes(why), shown.stdout);
    const { stdout } = await cluster.run(['pending']);
    assert.match(stdout, /Access \(template not ready: PodReachesTooFar\)/);
    const { code, stderr } = await cluster.run(['approve', 'a']);
    assert.equal(code, 0);
    assert.equal(stderr, `note: template shell is not ready: ${why}\n`);
    assert.equal((await cluster.run(['deny', 'a'])).stderr, '');
  });

  const notFound = (kind: string) => webhookDenial(404, 'RequestNotFound', `${kind} "gone" does not exist`);
  for (const [title, argv, owedKind, asked] of [
    ['in the first kind', ['approve', 'gone'], 'PodAccessRequest', ['PodAccessRequest']],
    ['in the other kind', ['deny', 'gone'], 'ExecAccessRequest', ['PodAccessRequest', 'ExecAccessRequest']],
    ['in the named kind', ['approve', 'exec/gone'], 'ExecAccessRequest', ['ExecAccessRequest']],
    ['in no kind', ['approve', 'gone'], '', ['PodAccessRequest', 'ExecAccessRequest']],
  ] as const) {
    it(`reviews the emergency of a deleted request by its name: ${title}`, async () => {
      await open({}, ({ method, path, body }, answer) => {
        if (method !== 'POST' || !path.endsWith('accessvotes')) return false;
        const { kind } = (body as { spec: { request: { kind: string } } }).spec.request;
        if (kind === owedKind) return false;
        answer.json(404, notFound(kind));
        return true;
      });
      const { code, stdout, stderr } = await cluster.run([...argv, '--about', 'Review']);
      const requests = cluster.writes.map(({ body }) => (body as { spec: { request: object } }).spec.request);
      assert.deepEqual(
        requests,
        asked.map((kind) => ({ kind, name: 'gone' })),
      );
      if (owedKind === '') {
        assert.equal(code, 3);
        assert.match(stderr, /RequestNotFound: .*PodAccessRequest "gone"/);
      } else {
        const decided = argv[0] === 'deny' ? 'denied' : 'approved';
        assert.equal(stdout, `${owedKind.toLowerCase()}.crds.wizardofoz.co/gone Review ${decided}\n`, stderr);
      }
    });
  }

  it('is told that a request is missing without --about Review', async () => {
    await open({});
    assert.match((await cluster.run(['approve', 'gone'])).stderr, /no request gone in namespace payments; /);
    assert.deepEqual(cluster.writes, []);
  });

  it('who may not read the template leaves its version to the server', async () => {
    await openTemplate(later, answering('podaccesstemplates/shell', 403, 'Forbidden'));
    assert.equal((await cluster.run(['approve', 'a'])).code, 0);
    assert.deepEqual(templates(), [undefined]);
  });

  it('sees the version, and the command that approves it', async () => {
    await openTemplate(later);
    const { stdout } = await cluster.run(['show', 'a', '--as', 'carol']);
    assert.match(stdout, /^Version: +3\.5f2c9a1b$/m);
    assert.match(
      stdout,
      /^Approve this: drawbridge approve pod\/a -n payments --as=carol --template-version 3\.5f2c9a1b$/m,
    );
  });

  it('waits for no answer about a template before the client asks about the next', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
    const held: Answer[] = [];
    await open(
      { podaccessrequests: names.map((name) => request(`r-${name}`, { templateName: name })) },
      ({ path }, answer) => {
        if (!path.endsWith('selfsubjectaccessreviews')) return false;
        held.push(answer);
        // The session has ten connections. Without them all in use at once, this would wait forever.
        if (held.length >= 10) for (const one of held.splice(0)) one.json(201, { status: { allowed: true } });
        return true;
      },
    );
    const { stdout } = await cluster.run(['pending', '-o', 'name']);
    assert.deepEqual(
      stdout.trimEnd().split('\n'),
      names.map((name) => `podaccessrequest.crds.wizardofoz.co/r-${name}`),
    );
  });
});

describe('--request-timeout', () => {
  let cluster: ScriptedCluster;
  afterEach(() => cluster.close());
  const silent: Fault = ({ path }) => path.endsWith('podaccessrequests');
  const cases: readonly (readonly [text: string, code: number, stderr: RegExp])[] = [
    ['50ms', 1, /cannot reach the cluster: .*in time|within 50 ms/],
    ['abc', 2, /--request-timeout: /],
    ['-1s', 2, /must not be negative/],
  ];
  for (const [text, code, stderr] of cases) {
    it(`ends a call without an answer: ${text}`, async () => {
      cluster = await ScriptedCluster.open({}, silent);
      const result = await cluster.run(['list', '--everyone', `--request-timeout=${text}`]);
      assert.equal(result.code, code, result.stderr);
      assert.match(result.stderr, stderr);
    });
  }

  for (const text of ['0', '0s', '30', '720h', '10000h']) {
    it(`is accepted as kubectl accepts it: ${text}`, async () => {
      cluster = await ScriptedCluster.open({});
      assert.equal((await cluster.run(['list', '--everyone', '--request-timeout', text])).code, 0);
    });
  }
});
