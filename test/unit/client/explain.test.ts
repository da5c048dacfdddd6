import assert from 'node:assert/strict';
import { parseWarning } from '../../../src/access/policy/warnings.ts';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';

type Kind = 'PodAccessTemplate' | 'ExecAccessTemplate';

describe('drawbridge explain', () => {
  let cluster: ScriptedCluster | undefined;
  afterEach(() => cluster?.close());

  const run = async (
    warnings: readonly string[],
    kind: Kind,
    accessConfig: object,
    status: object,
    ...argv: string[]
  ) => {
    const metadata = { name: 'shell', namespace: 'payments' };
    const template = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind, metadata, spec: { accessConfig }, status };
    cluster = await ScriptedCluster.open({ [`${kind.toLowerCase()}s`]: [template] }, ({ method }, answer) => {
      if (method !== 'POST') return false;
      const header = warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(', ');
      answer.json(201, { metadata: { name: 'x' } }, header === '' ? {} : { warning: header });
      return true;
    });
    return cluster.run(['explain', 'shell', ...argv]);
  };
  const rowOf = (stdout: string, rule: string): string =>
    new RegExp(`^(.*?) +${rule} +(.*)$`, 'm').exec(stdout)?.slice(1).join(': ') ?? stdout;

  const causes: readonly (readonly [warning: string, rule: string, row: string])[] = [
    [
      'ResourceRefused: the API server rejects the access pod: failed quota: q: must specify limits.cpu for: cart,envoy; set the resources that the ResourceQuota asks for in the pod',
      'ResourceRefused',
      'the API server rejects the access pod: failed quota: q: must specify limits.cpu for: cart,envoy; set the resources that the ResourceQuota asks for in the pod',
    ],
    [
      'InvalidTemplate: patchSpecOperations[0] (replace "/spec/x"): there is nothing at "/spec/x"; paths are those of a pod',
      'InvalidTemplate',
      'patchSpecOperations[0] (replace "/spec/x"): there is nothing at "/spec/x"; paths are those of a pod',
    ],
  ];
  for (const [warning, rule, row] of causes) {
    it(`says what the server found in the template, and who can correct it: ${rule}`, async () => {
      const { code, stdout } = await run([warning, '17 rules passed'], 'PodAccessTemplate', {}, {});
      assert.equal(code, 3);
      const who =
        rule === 'ResourceRefused' ? 'the author of the template or an administrator' : 'the author of the template';
      assert.equal(rowOf(stdout, rule), `fail: ask ${who} to correct this: ${row}`);
    });
  }

  it('takes no warning of other webhooks for a violation', async () => {
    const warning = 'Kyverno: label team is missing';
    const { code, stdout } = await run([warning, '17 rules passed'], 'PodAccessTemplate', {}, {});
    assert.equal(code, 0);
    assert.match(stdout, /^note +- +Kyverno: label team is missing$/m);
  });

  const approvals = {
    all: [
      { name: 'peer', groups: ['devs'] },
      { name: 'security', count: 2, groups: ['secops', 'sre'] },
    ],
  };
  it('says after the rules for which approvals the request would wait, and how to see who can approve', async () => {
    const { code, stdout } = await run(['17 rules passed'], 'PodAccessTemplate', { approvals }, {});
    assert.equal(code, 0);
    assert.deepEqual(
      stdout
        .split('\n')
        .slice(1)
        .map((line) => line.split(/ {3,}/).map((cell) => cell.trim())),
      [
        ['pass', '17 rules', '-'],
        [
          'note',
          'approvals',
          'after the rules pass, the request waits for approvals (peer: 1 of group devs; security: 2 of groups secops or sre); to see who can approve, if you may read bindings and roles: drawbridge approvers pod/shell -n payments',
        ],
        [''],
      ],
    );
  });

  it('says nothing about approvals of emergency access, which waits for none', async () => {
    const { stdout } = await run(['17 rules passed'], 'PodAccessTemplate', { approvals }, {}, '--emergency');
    assert.doesNotMatch(stdout, /approv/);
  });

  it('says what the template allows and requires besides, and templates names it', async () => {
    const accessConfig = {
      allowedGroups: ['devs'],
      maxDuration: '2h',
      approvals: { ...approvals, claimWithin: '1h' },
      start: {
        maxAhead: '24h',
        windows: [{ days: ['Mon', 'Tue'], from: '08:00', to: '18:00', timeZone: 'Europe/Berlin' }],
      },
      extension: { times: 2, total: '6h', approvals: 'None' },
      emergency: { groups: ['oncall'], maxDuration: '30m', reviewWithin: '72h' },
      session: { via: 'Gateway', record: 'Required', idleAfter: '15m' },
    };
    const { code, stdout } = await run(['17 rules passed'], 'PodAccessTemplate', accessConfig, { ready: true });
    assert.equal(code, 0);
    const notes: readonly (readonly [rule: string, text: string])[] = [
      [
        'claim',
        'approved access starts only when the requester claims it, within 1h of the approval or of a later --at',
      ],
      ['start', '--at can be up to 24h ahead; access starts only on Mon, Tue 08:00 to 18:00 Europe/Berlin'],
      ['extension', 'access can be extended 2 times, until access has lasted 6h, without approvals'],
      [
        'emergency',
        'members of oncall can use --emergency, without approvals, max 30m; another person must review it within 72h',
      ],
      [
        'session',
        'sessions go through the gateway, and end with access; a session without data ends after 15m; the output of sessions is recorded (Required)',
      ],
    ];
    for (const [rule, text] of notes) assert.equal(rowOf(stdout, rule), `note: ${text}`);
    const wide = await cluster?.run(['templates', '-o', 'wide']);
    assert.match(wide?.stdout ?? '', / claim, start, extension, emergency, session +-$/m);
  });

  it('says that it looks for no running pod, for a template that needs one', async () => {
    const exec = await run(['17 rules passed'], 'ExecAccessTemplate', {}, {});
    assert.equal(exec.code, 0);
    assert.match(rowOf(exec.stdout, 'running-pod'), /^not checked: access opens only in a running pod of the workload/);
    await cluster?.close();
    assert.doesNotMatch((await run(['17 rules passed'], 'PodAccessTemplate', {}, {})).stdout, /running/);
    await cluster?.close();
    const pod = await run(['17 rules passed'], 'ExecAccessTemplate', {}, {}, '--pod', 'web-0');
    assert.doesNotMatch(pod.stdout, /running-pod/);
  });

  it('leaves to the list of templates what apply warned about', async () => {
    const status = { ready: true };
    const problem = async (accessConfig: object, podSpec: object): Promise<string> => {
      const metadata = { name: 'shell', namespace: 'payments' };
      const apiVersion = 'crds.wizardofoz.co/v1alpha1';
      const template = { apiVersion, kind: 'PodAccessTemplate', metadata, spec: { accessConfig, podSpec }, status };
      cluster = await ScriptedCluster.open({ podaccesstemplates: [template] }, () => false);
      const { stdout } = await cluster.run(['templates', '-o', 'wide']);
      return stdout;
    };
    const shown = await problem({ allowedGroups: [] }, { activeDeadlineSeconds: 60 });
    assert.match(shown, /is empty: only users .*\. spec\.podSpec sets activeDeadl/);
    await cluster?.close();
    const fitting = await problem(
      { allowedGroups: ['devs'], maxDuration: '1m', defaultDuration: '1m' },
      { activeDeadlineSeconds: 60 },
    );
    assert.doesNotMatch(fitting, /spec\./);
  });

  it('names the fields that the API server ignores', async () => {
    const message = 'the API server ignores spec.imagePulPolicy; correct or remove it';
    const conditions = [{ type: 'AccessPlanValid', status: 'True', reason: 'FieldsIgnored', message }];
    const { code, stdout } = await run(['17 rules passed'], 'PodAccessTemplate', {}, { conditions });
    assert.equal(code, 0);
    assert.equal(rowOf(stdout, 'ignored-fields'), `note: ${message} (ask the author of the template)`);
  });
});

describe('the client reads', () => {
  const lines: readonly (readonly [warning: string, verdict: string, rule: string, remedy: string])[] = [
    ['FAIL eligible: the caller is in a group; to pass: join one', 'fail', 'eligible', 'join one'],
    ['not checked limit-user: whether it fits; to check: wait', 'not checked', 'limit-user', 'wait'],
    ['17 rules passed', 'pass', '17 rules', ''],
    ['PodIsSelected: Service web selects it; change the labels; or list it', 'fail', 'PodIsSelected', ''],
    ['PlanTooLarge: it is too large', 'fail', 'PlanTooLarge', ''],
    ['something else', 'note', '', ''],
  ];
  for (const [warning, verdict, rule, remedy] of lines) {
    it(`the warning: ${warning}`, () => {
      const found = parseWarning(warning);
      assert.deepEqual([found?.verdict, found?.rule, found?.remedy], [verdict, rule, remedy]);
    });
  }
});
