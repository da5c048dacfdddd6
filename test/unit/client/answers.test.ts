import assert from 'node:assert/strict';
import { answering, type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { webhookDenial } from '../../support/webhook-denial.ts';
import { request, template } from './objects.ts';

const grant = { rules: [], expiresAt: '2099-01-01T00:00:00Z' };

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
    [['list'], 'you \\(alice\\) have no requests'],
    [['list', '--user', 'bob'], 'bob has no requests'],
    [['list', '--everyone'], 'no requests found'],
    [['pending'], 'no request waits for you'],
    [['who'], 'no one has access'],
    [['who', '--all'], 'no requests found'],
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

  const oneKind: readonly (readonly [argv: readonly string[], stdout: RegExp])[] = [
    [['list'], /^a +pod /m],
    [['pending'], /^b +pod +shell +bob +Access /m],
    [['get', 'a'], /^Name: +pod\/a$/m],
    [['approve', 'b', 'a'], /\/b approved\n.*\/a approved$/m],
  ];
  for (const [argv, stdout] of oneKind)
    it(`once which kind it did not search, if the user may read only the other: ${argv.join(' ')}`, async () => {
      const waits = { approval: { state: 'Pending', all: [] } };
      const found = [request('a', waits), request('b', waits, { requester: { username: 'bob' } })];
      await open({ podaccessrequests: found }, answering(/\/execaccessrequests(\/.)?$/, 403, 'Forbidden'));
      const one = await cluster.run(argv);
      const note = 'note: not searched: execaccessrequests, which you may not read\n';
      assert.deepEqual([one.code, one.stderr], [0, note]);
      assert.match(one.stdout, stdout);
    });

  it('that the user may read requests of neither kind', async () => {
    await open({}, answering(/\/(pod|exec)accessrequests(\/a)?$/, 403, 'Forbidden'));
    for (const argv of [['list'], ['get', 'a']]) {
      const { code, stderr } = await cluster.run(argv);
      assert.deepEqual([code, stderr], [3, 'drawbridge: denied: scripted 403\n']);
    }
  });

  it('commands whose flags a shell reads as they were given', async () => {
    const flags = ['--as', 'alice', '--as-group', 'all devs; id'];
    for (const argv of [['list'], ['get', 'none']]) {
      const { stderr } = await cluster.run([...argv, ...flags]);
      assert.match(stderr, / -n payments --as=alice '--as-group=all devs; id'/);
    }
  });

  const emptyEntries: readonly (readonly [status: object, why: string])[] = [
    [{}, 'the server has not written it yet; check that the inventory feature runs'],
    [
      {
        conditions: [{ type: 'Ready', status: 'False', reason: 'NoComponents', message: 'no component is registered' }],
      },
      'no component is registered',
    ],
  ];
  for (const [status, why] of emptyEntries) {
    it(`why an entry has no components: ${why}`, async () => {
      await open({ clusterinventories: [{ metadata: { name: 'prod', namespace: 'payments' }, status }] });
      const { stderr } = await cluster.run(['inventory', 'why', 'prod']);
      assert.equal(stderr, `the status of prod has no components: ${why}\n`);
    });
  }

  it('nothing of -A to those who may not list all namespaces', async () => {
    await open({}, answering('selfsubjectaccessreviews', 201, { status: { allowed: false } }));
    for (const [argv, nothing] of lists) {
      const { stderr } = await cluster.run(argv);
      assert.match(stderr, new RegExp(`^${nothing} in namespace payments\\b`));
      assert.doesNotMatch(stderr, /try -A/);
    }
  });

  it('the whole reason in the wide list', async () => {
    const message = `${'w'.repeat(300)} end`;
    const conditions = [{ type: 'AccessApproved', status: 'Unknown', reason: 'Pending', message }];
    await open({ podaccessrequests: [request('a', { approval: { state: 'Pending' }, conditions })] });
    assert.ok((await cluster.run(['list', '-o', 'wide'])).stdout.includes(message));
  });

  it('until when access was extended', async () => {
    const expiresAt = '2099-01-01T00:20:00Z';
    const before = request('a', { ready: true, grant });
    const extended = { by: '30m', state: 'Granted', expiresAt };
    const spec = { extensions: [{ by: '30m' }] };
    const after = request('a', { ready: true, grant, expiresAt, extensions: [extended] }, spec);
    await open({ podaccessrequests: [before] }, ({ method, path, watch }, answer) => {
      if (watch || method !== 'GET' || !path.endsWith('podaccessrequests')) return false;
      answer.list('7', [after]);
      return true;
    });
    const { code, stdout, stderr } = await cluster.run(['extend', 'a', '--by', '30m']);
    const text = `podaccessrequest.crds.wizardofoz.co/a extended until ${expiresAt}\n`;
    assert.deepEqual([code, stdout], [0, text], stderr);
    assert.match(stderr, new RegExp(`^access is open until ${expiresAt} `));
  });

  const waiting = (all: readonly object[]) => request('a', { approval: { state: 'Pending', all } });
  const extending = request(
    'a',
    { ready: true, grant, extensions: [{ state: 'Pending' }] },
    { extensions: [{ by: '5m' }] },
  );
  const review = { approval: { state: 'ReviewOwed' } };
  const owed = request('a', { ...review, ended: { how: 'Expired' } }, { emergency: true });
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
    [extending, ['deny', '--about', 'Access'], 'denied; the server closes the access'],
    [owed, ['approve'], 'Review approved'],
  ];
  for (const [found, [command = '', ...flags], text] of votes) {
    it(`what was decided: ${text}`, async () => {
      await open({ podaccessrequests: [found] });
      const { stdout, stderr } = await cluster.run([command, 'a', ...flags]);
      assert.equal(stdout, `podaccessrequest.crds.wizardofoz.co/a ${text}\n`, stderr);
    });
  }

  const teams = [
    { name: 'owner', groups: ['leads'] },
    { name: 'security', groups: ['secops'] },
  ];
  const message = 'the request was revoked: incident closed';
  const ended = {
    conditions: [{ type: 'AccessStillValid', status: 'False', reason: 'Revoked', message }],
    ended: { how: 'Revoked', reason: 'Revoked' },
  };
  const endings: readonly (readonly [what: string, later: object | undefined, note: string])[] = [
    ['stays', request('a', ended), `has ended: Revoked: ${message}`],
    [
      'is revoked, and its access not closed yet',
      {
        ...request('a', { ready: true, podName: 'p', grant }),
        spec: { revoked: true, revokedReason: 'incident closed' },
      },
      'ends: incident closed; the server has not closed the access yet',
    ],
    ['is gone', undefined, 'has ended: the request was deleted'],
  ];
  for (const [what, later, note] of endings) {
    it(`why a shell ended whose access ended, if the request ${what}`, async () => {
      let reads = 0;
      await open({ podaccessrequests: [request('a', { ready: true, podName: 'p', grant })] }, ({ path }, answer) => {
        if (!path.endsWith('podaccessrequests/a') || reads++ === 0) return false;
        if (later) answer.json(200, later);
        else answer.status(404, 'NotFound');
        return true;
      });
      const { code, stderr } = await cluster.run(['exec', 'pod/a']);
      assert.deepEqual([code, stderr], [0, `note: a ${note}\n`]);
    });
  }

  for (const [code, field, hint] of [
    ['TemplateNotFound', 'spec.templateName', '; with this client: drawbridge templates -n payments'],
    ['InvalidDuration', 'spec.duration', ' (spec.duration is --for)'],
  ] as const)
    it(`what helps in this client, by the code and the field of a denial: ${code}`, async () => {
      await open({}, answering('execaccessrequests', 403, webhookDenial(403, code, 'what to do', field), 'POST'));
      const { code: exit, stderr } = await cluster.run(['request', 'exec', 'shell']);
      assert.deepEqual([exit, stderr], [3, `drawbridge: denied: ${code}: what to do${hint}\n`]);
    });

  it('that a template permits no exec, before it asks for access with --exec', async () => {
    const accessConfig = { exec: false, rules: [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }] };
    const logs = template(accessConfig, {}, { name: 'logs' });
    await open({ podaccesstemplates: [logs], execaccesstemplates: [{ ...logs, kind: 'ExecAccessTemplate' }] });
    assert.match((await cluster.run(['templates'])).stdout, /^logs +pod, no shell /m);
    const { code, stderr } = await cluster.run(['request', 'pod', 'logs', '--for', '10m', '--exec']);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /template logs permits no exec; omit --exec, .*\. Run: drawbridge request pod logs -n payments --for=10m$/m,
    );
    const ofPod = await cluster.run(['request', 'exec', 'logs', '--pod', 'db-0', '--exec']);
    assert.match(ofPod.stderr, /\. Run: drawbridge request exec logs -n payments --pod=db-0$/m);
    assert.deepEqual(cluster.writes, []);
  });

  const voted = { voter: 'carol', decision: 'Approve' };
  const ignored = { ...voted, ignored: 'NotApprover: carol does not hold the verb' };
  const choices: readonly (readonly [
    title: string,
    groups: readonly string[],
    all: readonly object[],
    votes: readonly object[],
    choice: string,
    shown: RegExp,
  ])[] = [
    ['in a group that must approve', ['leads'], teams, [], 'approve, deny', /^Approve this: drawbridge approve/m],
    ['if anyone may approve', ['devs'], [...teams, { name: 'anyone' }], [], 'approve, deny', /^Approve this: /m],
    [
      'in none of the groups',
      ['devs'],
      teams,
      [],
      'deny (others must approve)',
      /^You can only: deny \(others must approve\): drawbridge deny pod\/a -n payments$/m,
    ],
    [
      'after an approval',
      ['leads'],
      teams,
      [voted],
      'deny (you approved)',
      /^You can only: deny \(you approved\): drawbridge deny pod\/a -n payments$/m,
    ],
    ['after an approval that does not count', ['leads'], teams, [ignored], 'approve, deny', /^Approve this: /m],
  ];
  for (const [title, groups, all, cast, choice, shown] of choices) {
    it(`what a voter can do ${title}`, async () => {
      const found = request('a', { approval: { state: 'Pending', votes: cast } });
      await open(
        { podaccessrequests: [found], podaccesstemplates: [template({ approvals: { all } })] },
        answering('selfsubjectreviews', 201, { status: { userInfo: { username: 'carol', groups } } }),
      );
      const { stdout } = await cluster.run(['pending']);
      assert.ok(stdout.includes(`   ${choice}   `), stdout);
      assert.match((await cluster.run(['show', 'a'])).stdout, shown);
    });
  }

  it('that the requester must claim access that was approved, and how', async () => {
    const approval = { state: 'Claimable', due: '2099-01-01T00:00:00Z' };
    const message = `waiting until ${approval.due} for the requester to claim the access`;
    const conditions = [{ type: 'AccessApproved', status: 'Unknown', reason: 'Claimable', message }];
    await open({ podaccessrequests: [request('a', { approval, conditions })] });
    const { stderr } = await cluster.run(['watch', 'a', '--timeout', '1ms']);
    assert.match(
      stderr,
      /access is not open: waiting until 2099-01-01T00:00:00Z for the requester to claim the access; claim it with: drawbridge claim pod\/a -n payments\. To go on: /,
    );
    await open({ podaccessrequests: [request('a', { approval, conditions }, { claimed: true })] });
    const claimed = await cluster.run(['claim', 'a', '--timeout', '1ms']);
    assert.match(claimed.stderr, /access is not open: access is being opened\. To go on: /);
  });

  for (const argv of [
    ['claim', 'a'],
    ['extend', 'a', '--by', '5m'],
  ])
    it(`in the words of the server why it denies ${argv[0]}`, async () => {
      const denial = webhookDenial(403, 'WrongState', 'the state is Pending; wait', 'spec.claimed');
      await open({ podaccessrequests: [request('a', { ready: true, grant })] }, answering('/a', 403, denial, 'PATCH'));
      const { code, stderr } = await cluster.run(argv);
      assert.deepEqual([code, stderr], [3, 'drawbridge: denied: WrongState: the state is Pending; wait\n']);
    });

  it('that a revoked request had opened no access', async () => {
    await open({ podaccessrequests: [request('a', { approval: { state: 'Pending' } })] });
    assert.match((await cluster.run(['revoke', 'a'])).stdout, /\/a revocation requested; it had opened no access$/m);
  });

  it('whose request it revoked, if it is that of another person', async () => {
    const owned = request('a', {}, { requester: { username: 'bob' } });
    await open({ podaccessrequests: [owned] });
    for (const argv of [['a'], ['--user', 'bob']])
      assert.match((await cluster.run(['revoke', ...argv])).stdout, /\/a of bob: revocation requested; /);
    await open({ podaccessrequests: [owned] }, answering('selfsubjectreviews', 500, {}));
    const { code, stdout } = await cluster.run(['revoke', 'a']);
    assert.equal(code, 0);
    assert.match(stdout, /\/a of bob: revocation requested; /);
  });

  it('what finds the names of requests, if revoke gets none', async () => {
    const { code, stderr } = await cluster.run(['revoke']);
    const message =
      'give either names of requests, or --user NAME; to see yours: drawbridge list; to see all that are open: drawbridge who; see drawbridge revoke --help';
    assert.deepEqual([code, stderr], [2, `drawbridge: ${message}\n`]);
  });

  it('what becomes of the sessions of access that is revoked', async () => {
    const kept = '; sessions that are open in its pod go on until they are closed or the pod is deleted';
    const cases: [kind: string, grant: object, sessions: string][] = [
      ['PodAccessRequest', grant, ''],
      ['ExecAccessRequest', grant, kept],
      ['ExecAccessRequest', { ...grant, session: { via: 'Gateway' } }, '; the gateway ends its sessions'],
    ];
    for (const [kind, grant, sessions] of cases) {
      await open({ [`${kind.toLowerCase()}s`]: [{ ...request('a', { ready: true, grant }), kind }] });
      const revoked = `/a revocation requested; the server closes the access${sessions}\n`;
      assert.ok((await cluster.run(['revoke', 'a'])).stdout.endsWith(revoked));
    }
  });

  const logs = 'kubectl logs -f -n payments a-access\n';
  const grants: readonly (readonly [
    what: string,
    username: string,
    resources: readonly string[],
    accessMessage: string | undefined,
    note: string,
  ])[] = [
    ['nothing, if the command failed', 'alice', ['pods', 'pods/exec'], logs, ''],
    ['how to use access without exec', 'alice', ['pods/log'], logs, `note: a permits no exec; use it with: ${logs}`],
    [
      'how to see the permissions, if it knows no command for them',
      'alice',
      ['pods'],
      undefined,
      'note: a permits no exec; to see what it permits: drawbridge get pod/a -n payments -o yaml\n',
    ],
    [
      'that the access is that of another',
      'carol',
      ['pods/exec'],
      logs,
      'note: a was opened for carol, not for alice; for access of your own: drawbridge request pod shell -n payments\n',
    ],
  ];
  for (const [what, username, resources, accessMessage, note] of grants) {
    it(`after a failed exec: ${what}`, async () => {
      const given = {
        ...grant,
        subjects: [{ kind: 'User', name: username }],
        rules: [{ apiGroups: [''], resources, verbs: ['get'] }],
      };
      const status = { ready: true, grant: given, podName: 'a-access', accessMessage };
      await open({ podaccessrequests: [request('a', status, { requester: { username } })] });
      cluster.exitCode = 7;
      const { code, stderr } = await cluster.run(['exec', 'a']);
      assert.deepEqual([code, stderr], [7, note]);
      cluster.exitCode = 0;
      assert.equal((await cluster.run(['exec', 'a'])).stderr, '');
    });
  }

  it('how to use access with the flags with which it was requested', async () => {
    const status = { ready: true, grant, podName: 'a-access', accessMessage: logs };
    await open({ podaccessrequests: [request('a', status)] });
    const flags = ['--context', 'one', '--as', 'alice', '--as-group', 'all devs', '--as-uid', 'u1'];
    const command = "kubectl --context=one --as=alice '--as-group=all devs' --as-uid=u1 logs -f -n payments a-access\n";
    assert.equal((await cluster.run(['watch', 'a', ...flags])).stdout, command);
    const { stdout } = await cluster.run(['get', 'a', ...flags]);
    assert.ok(stdout.includes(`Use:       ${command}`), stdout);
  });

  const toSee = 'note: to see what the access permits: drawbridge get pod/a -n payments -o yaml\n';
  const permitted: readonly (readonly [what: string, resource: string, command: string, note: string])[] = [
    ['exec', 'pods/exec', 'exec -ti -n payments p -- /bin/sh', ''],
    ['only logs', 'pods/log', 'logs -f -n payments p', ''],
    ['something else', 'pods', '', toSee],
  ];
  for (const [what, resource, command, note] of permitted) {
    it(`that access is open without its command, and how to use it if it permits ${what}`, async () => {
      const message = 'accessCommand names label "app2", which pod p does not have; name another one';
      const conditions = [
        { type: 'AccessResourcesReady', status: 'True', reason: 'Success', message: '' },
        { type: 'AccessMessage', status: 'False', reason: 'InvalidAccessCommand', message },
      ];
      const verbs = resource === 'pods/log' ? ['get'] : ['get', 'create'];
      const rules = [{ apiGroups: [''], resources: [resource], verbs, resourceNames: ['p'] }];
      const given = { ...grant, rules };
      await open({ podaccessrequests: [request('a', { grant: given, podName: 'p', conditions })] });
      const { code, stdout, stderr } = await cluster.run(['watch', 'a', '--timeout', '1ms']);
      assert.deepEqual([code, stdout], [0, command === '' ? '' : `kubectl ${command}\n`], stderr);
      const why = `InvalidAccessCommand: ${message}. Ask the author of the template to correct it`;
      assert.match(stderr, /^access is open until 2099-01-01T00:00:00Z /);
      assert.ok(stderr.endsWith(`\nnote: ${why}\n${note}`), stderr);
      const details = (await cluster.run(['get', 'a'])).stdout;
      assert.ok(details.includes(why), details);
      assert.equal(/^Use: +kubectl (.*)$/m.exec(details)?.[1] ?? '', command);
      assert.match((await cluster.run(['list'])).stdout, /^a +pod +shell +Open /m);
      assert.deepEqual([(await cluster.run(['exec', 'a'])).code, cluster.ran.length], [0, 1]);
    });
  }

  it('of which namespace the requests are that it revoked in all', async () => {
    await open({ podaccessrequests: [request('a', { ready: true, grant })] });
    const { stdout } = await cluster.run(['revoke', '--user', 'alice', '-A']);
    assert.match(stdout, /\/a revocation requested in payments; the server closes the access$/m);
  });

  const forbidding = (verb: string, resource: string, namespace = 'payments'): Fault => {
    const message = `x is forbidden: User "alice" cannot ${verb} resource "${resource}" in API group "x" in the namespace "${namespace}"`;
    return answering(/accessrequests$/, 403, { kind: 'Status', code: 403, message });
  };

  it('to name a namespace to those who may not list all', async () => {
    await open({}, forbidding('list', 'podaccessrequests', ''));
    const { code, stderr } = await cluster.run(['list', '-A']);
    assert.equal(code, 3);
    assert.match(stderr, /; use -n NAMESPACE instead of -A, or ask an administrator for this permission$/m);
  });

  it('that the namespace of a command may be the wrong one', async () => {
    await open({}, forbidding('list', 'podaccessrequests', 'default'));
    const { code, stderr } = await cluster.run(['list', '-n', 'default']);
    assert.equal(code, 3);
    assert.match(
      stderr,
      /in the namespace "default"; name another namespace with -n, or ask an administrator for this permission, which the ClusterRoles drawbridge-requester \(to request access\), drawbridge-approver \(to approve it\), and drawbridge-viewer \(to see it\) of the chart give$/m,
    );
    await open({}, forbidding('list', 'podaccessrequests', 'payments'));
    assert.match(
      (await cluster.run(['list'])).stderr,
      /in the namespace "payments"; check the name of the namespace, or ask an administrator for this permission, which /m,
    );
  });

  const roles: readonly (readonly [verb: string, resource: string, end: string])[] = [
    ['create', 'accessvotes', ', which the ClusterRole drawbridge-approver of the chart gives'],
    ['list', 'accessvotes', ', which the ClusterRoles drawbridge-approver and drawbridge-viewer of the chart give'],
    ['create', 'podaccessrequests', ', which the ClusterRole drawbridge-requester of the chart gives'],
    ['create', 'execaccesstemplates', ''],
    ['get', 'secrets', ''],
  ];
  for (const [verb, resource, end] of roles) {
    it(`which role gives a permission that a person lacks, if one does: ${verb} ${resource}`, async () => {
      await open({}, forbidding(verb, resource));
      const { stderr } = await cluster.run(['list']);
      assert.ok(stderr.endsWith(`ask an administrator for this permission${end}\n`), stderr);
    });
  }

  it('which name of a group has a space that no one sees', async () => {
    const approvals = { all: [{ name: 'peer', groups: ['leads '] }] };
    await open({ podaccesstemplates: [template({ allowedGroups: ['devs ', 'sre'], approvals })] });
    const { stdout } = await cluster.run(['templates']);
    assert.match(stdout, / "devs ", sre +peer: 1 of group "leads "$/m);
  });

  for (const command of ['get a', 'explain a', 'revoke a', 'inventory why a']) {
    it(`that the cluster lacks a feature, and not an object: ${command}`, async () => {
      const message = 'the server could not find the requested resource';
      await open({}, answering('', 404, { kind: 'Status', code: 404, reason: 'NotFound', message }));
      const { code, stderr } = await cluster.run(command.split(' '));
      assert.equal(code, 1);
      assert.match(stderr, /^drawbridge: this cluster does not serve the kinds of drawbridge that this command needs/);
    });
  }

  it('which command helps, with the name by which the user called it', async () => {
    cluster.program = 'kubectl drawbridge';
    const { stderr } = await cluster.run(['get', 'none']);
    assert.match(stderr, /to list requests: kubectl drawbridge list -n payments$/m);
  });
});
