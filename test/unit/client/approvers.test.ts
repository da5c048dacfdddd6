import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { answering, type Fault, ScriptedCluster } from '../../support/scripted-cluster.ts';

const apiVersion = 'crds.wizardofoz.co/v1alpha1';
const template = (approvals?: object) => ({
  apiVersion,
  kind: 'ExecAccessTemplate',
  metadata: { name: 'production', namespace: 'payments' },
  spec: { accessConfig: { allowedGroups: ['devs'], ...(approvals ? { approvals } : {}) } },
});
const role = (name: string, rule: object = {}) => ({
  kind: 'ClusterRole',
  metadata: { name },
  rules: [{ apiGroups: ['crds.wizardofoz.co'], resources: ['execaccesstemplates'], verbs: ['approve'], ...rule }],
});
const binding = (name: string, ...subjects: readonly (readonly [kind: string, name: string])[]) => ({
  kind: 'RoleBinding',
  metadata: { name, namespace: 'payments' },
  roleRef: { kind: 'ClusterRole', name: name.split('-')[0] },
  subjects: subjects.map(([kind, subject]) => ({ kind, name: subject, namespace: 'ops' })),
});
const clusterroles = [role('approver'), role('reader', { verbs: ['get'] }), role('other', { resourceNames: ['test'] })];
const leads = { name: 'owner', groups: ['payments-leads'] };
const security = { name: 'security', groups: ['secops', 'sre'] };

describe('drawbridge approvers', () => {
  let cluster: ScriptedCluster | undefined;
  afterEach(() => cluster?.close());
  const run = async (
    approvals: object | undefined,
    rolebindings: readonly object[],
    fault?: Fault,
    ...flags: string[]
  ) => {
    const objects = { podaccesstemplates: [], execaccesstemplates: [template(approvals)] };
    const rbac = { rolebindings, clusterrolebindings: [], roles: [], clusterroles };
    cluster = await ScriptedCluster.open({ ...objects, ...rbac }, fault);
    const { code, stdout, stderr } = await cluster.run(['approvers', 'production', ...flags]);
    assert.equal(code, 0, stderr);
    return { stdout, missing: /^no binding gives .*$/m.exec(stderr)?.[0], stderr };
  };
  const bind = 'kubectl create rolebinding production-approvers -n payments --clusterrole=drawbridge-approver';
  const bothGroups = [binding('approver-all', ['Group', 'payments-leads'], ['Group', 'sre'])];
  const bot = [binding('approver', ['ServiceAccount', 'bot'])];
  const peer = { name: 'peer' };
  const ofLeads = ['owner', '--group=payments-leads'] as const;

  const cases: readonly (readonly [
    title: string,
    approvals: object | undefined,
    bindings: readonly object[],
    entries?: string,
    groups?: string,
  ])[] = [
    ['no subject is bound', { all: [leads] }, [], ...ofLeads],
    [
      'bindings name a role that only reads, or another template',
      { all: [leads] },
      [binding('reader', ['Group', 'payments-leads']), binding('other', ['User', 'carol'])],
      ...ofLeads,
    ],
    [
      'a group of one entry of two is bound',
      { all: [leads, security] },
      [binding('approver', ['Group', 'payments-leads'])],
      'security',
      '--group=secops --group=sre',
    ],
    [
      'only other groups are bound',
      { all: [leads, security] },
      [binding('approver', ['Group', 'system:masters'])],
      'owner and security',
      '--group=payments-leads --group=secops --group=sre',
    ],
    ['only a ServiceAccount is bound, whose votes do not count', { all: [leads] }, bot, ...ofLeads],
    [
      'only a ServiceAccount is bound, and the entry names groups',
      { all: [leads], serviceAccounts: true },
      bot,
      ...ofLeads,
    ],
    ['no subject is bound for an entry without groups', { all: [peer] }, [], 'peer', '--group=GROUP'],
    [
      'the entry names a group of Kubernetes, which must not be bound',
      { all: [{ ...peer, groups: ['system:authenticated'] }] },
      [],
      'peer',
      '--group=GROUP',
    ],
    ['a group of each entry is bound', { all: [leads, security] }, bothGroups],
    ['a user is bound for one without groups', { all: [peer] }, [binding('approver', ['User', 'carol'])]],
    ['a ServiceAccount is bound whose votes count', { all: [peer], serviceAccounts: true }, bot],
    ['the template requires no approvals', undefined, []],
  ];
  for (const [title, approvals, bindings, entries, groups] of cases) {
    it(`${entries ? 'says which binding is missing, and what binds,' : 'says nothing of the kind'} if ${title}`, async () => {
      const { missing = '' } = await run(approvals, bindings);
      if (entries === undefined) return assert.equal(missing, '');
      // Without groups, each bound user counts.
      const users = groups === '--group=GROUP' && !JSON.stringify(approvals).includes('groups');
      const next = users ? 'an administrator' : 'bound users count only if they are in one; an administrator';
      assert.match(missing, new RegExp(`to a group that counts for ${entries}; ${next} `));
      assert.ok(missing.endsWith(`: ${bind} ${groups}`), missing);
    });
  }

  it('names the entries whose groups no binding names, if a user is bound, whose groups are unknown', async () => {
    const subjects = binding('approver', ['Group', 'payments-leads'], ['User', 'carol']);
    const { missing } = await run({ all: [leads, security] }, [subjects]);
    assert.equal(
      missing,
      `no binding gives the verb approve to a group that counts for security; bound users count only if they are in one; an administrator can bind it: ${bind} --group=secops --group=sre`,
    );
  });

  const refused: readonly (readonly [what: string, path: RegExp, line: RegExp])[] = [
    [
      'RoleBindings',
      /\/rolebindings$/,
      /who can approve, because you may not read the RoleBindings of namespace payments; ask an administrator$/,
    ],
    [
      'ClusterRoleBindings',
      /\/clusterrolebindings$/,
      /who else can approve, because you may not read the ClusterRoleBindings; ask /,
    ],
    [
      'any binding',
      /rolebindings$/,
      /who can approve, because you may not read the RoleBindings of namespace payments or the ClusterRoleBindings; ask /,
    ],
    ['a role', /\/clusterroles\/approver$/, /who can approve, because you may not read the ClusterRole approver; ask /],
  ];
  for (const [what, path, line] of refused) {
    it(`says in one sentence what the user may not read, and no missing binding, if that is ${what}`, async () => {
      const unread = answering(path, 403, 'Forbidden');
      const { missing, stderr } = await run({ all: [leads] }, [binding('approver', ['Group', 'x'])], unread);
      assert.equal(missing, undefined);
      const [needed = '', notChecked = '', ...others] = stderr.trimEnd().split('\n');
      assert.deepEqual([needed, others], ['needed: owner: 1 of group payments-leads', []]);
      assert.match(notChecked, line);
    });
  }

  it('quotes names of groups for the shell, because an administrator pastes the command', async () => {
    const groups = ["a'; touch /tmp/x; '", '$(id)', 'oidc:on call'];
    const { missing = '' } = await run({ all: [{ name: 'peer', groups }] }, []);
    const words = missing.slice(missing.indexOf('--group='));
    const printed = execFileSync('sh', ['-c', `printf '%s\\n' ${words}`], { encoding: 'utf8' });
    assert.deepEqual(
      printed.trimEnd().split('\n'),
      groups.map((name) => `--group=${name}`),
    );
  });

  it('prints the command for the cluster that it read', async () => {
    const { missing } = await run({ all: [leads] }, [], undefined, '--context', 'one', '-n', 'payments');
    assert.match(missing ?? '', / -n payments --context=one --clusterrole=/);
  });

  it('says for each holder what its votes count for', async () => {
    const subjects = binding(
      'approver',
      ['Group', 'sre'],
      ['Group', 'qa'],
      ['User', 'carol'],
      ['ServiceAccount', 'bot'],
    );
    const { stdout } = await run({ all: [{ name: 'peer' }, security], serviceAccounts: true }, [subjects]);
    assert.match(stdout, /^Group +sre +peer, security +RoleBinding approver$/m);
    assert.match(stdout, /^Group +qa +peer +RoleBinding approver$/m);
    assert.match(stdout, /^User +carol +as their groups allow +RoleBinding approver$/m);
    assert.match(stdout, /^ServiceAccount +ops\/bot +peer +RoleBinding approver$/m);
  });
});
