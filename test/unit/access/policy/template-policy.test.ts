import assert from 'node:assert/strict';
import { explain, firstViolation } from '../../../../src/access/policy/policy.ts';
import { type TemplateInput, templatePolicy, templateWarnings } from '../../../../src/access/policy/template-policy.ts';
import { accessConfig } from '../../../support/access-objects.ts';
import { pluck } from '../../../support/pluck.ts';

const controllerTargetRef = { apiVersion: 'apps/v1' as const, kind: 'Deployment' as const, name: 'payments' };
const podSpec = { containers: [{ name: 'app', image: 'a:1' }] };

function template(spec: object, config: object = {}, kind: TemplateInput['kind'] = 'PodAccessTemplate'): TemplateInput {
  return {
    kind,
    namespace: 'payments',
    name: 'shell',
    spec: { accessConfig: { ...accessConfig, ...config }, ...spec },
    grantable: [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }],
  };
}
const logsCommand = 'kubectl logs -f -n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
const rule = (resource: string, ...verbs: string[]) => ({ apiGroups: [''], resources: [resource], verbs });
const everything = [{ apiGroups: [''], resources: ['*'], verbs: ['*'] }];
/** A template whose `accessConfig` has these fields, too. */
const configured = (config: object): TemplateInput => template({ podSpec }, config);
/** A template with rules for `count` permissions, each of them twice. Everything is grantable. */
const withRights = (count: number): TemplateInput => {
  const verbs = Array.from({ length: count }, (_, index) => `v${'a'.repeat(index)}`);
  const rules = verbs.map((verb) => rule('pods/log', verb, verb));
  return { ...configured({ rules }), grantable: everything };
};
const mutation = (controllerTargetMutationConfig: object): TemplateInput =>
  template({ controllerTargetRef, controllerTargetMutationConfig });
const patched = (...patchSpecOperations: object[]): TemplateInput => mutation({ patchSpecOperations });
const op = (operation: object): TemplateInput => patched({ op: 'test', path: '/spec/x', value: null }, operation);

/** Versions of a template that differ by one more violation of a rule that the first version violates already. */
const additions: [rule: string, before: TemplateInput, after: TemplateInput, message: RegExp][] = [
  [
    'durations',
    configured({ defaultDuration: 'a while' }),
    configured({ defaultDuration: 'a while', maxDuration: '1d' }),
    /maxDuration.*"1d"/,
  ],
  [
    'groups',
    configured({ allowedGroups: ['system:masters'] }),
    configured({ allowedGroups: ['system:masters', 'system:nodes'] }),
    /"system:nodes"/,
  ],
  [
    'grant-to',
    configured({ grantTo: 'AllowedGroups', approvals: { all: [{ name: 'peer' }] } }),
    configured({ grantTo: 'AllowedGroups', approvals: { all: [{ name: 'peer' }] }, emergency: {} }),
    /emergency is set/,
  ],
  [
    'session',
    configured({ session: { via: 'Direct', idleAfter: '15m' } }),
    configured({ session: { via: 'Direct', idleAfter: '15m', recordInput: true } }),
    /recordInput is true/,
  ],
  [
    'quantities',
    template({ podSpec, maxCpu: 'two' }),
    template({ podSpec, maxCpu: 'two', maxMemory: 'much' }),
    /maxMemory.*"much"/,
  ],
  [
    'rules',
    configured({ rules: [rule('secrets', 'get')] }),
    configured({ rules: [rule('secrets', 'get', '*'), rule('nodes', 'get')] }),
    /rules\[0\]\.verbs has "\*"/,
  ],
  [
    'grantable',
    configured({ rules: [rule('pods/attach', 'get', 'create')] }),
    configured({ rules: [rule('pods/attach', 'get', 'create'), rule('pods/proxy', 'get')] }),
    /hands out get pods\/proxy, which/,
  ],
  [
    'session-rules',
    configured({ session: { via: 'Gateway' }, rules: [rule('pods', 'patch')] }),
    configured({ session: { via: 'Gateway' }, rules: [rule('pods', 'patch', 'delete')] }),
    /hands out delete pods, which the gateway/,
  ],
];

/** Versions of a template whose violations only move in a list, and a violation that only resembles a stored one. */
const moves: [rule: string, before: TemplateInput, repaired: TemplateInput, worse: TemplateInput, message: RegExp][] = [
  [
    'group-names',
    configured({ allowedGroups: ['devs ', ' sre'] }),
    configured({ allowedGroups: [' sre'] }),
    configured({ allowedGroups: [' sre', 'devs[0] '] }),
    /allowedGroups\[1\] is "devs\[0\] "/,
  ],
  [
    'windows',
    configured({ start: { windows: [{ timeZone: 'CEST' }, { timeZone: 'Berlin' }] } }),
    configured({ start: { windows: [{ timeZone: 'Berlin' }] } }),
    configured({ start: { windows: [{ timeZone: 'Berlin' }, { timeZone: 'Berlin' }] } }),
    /windows\[1\].*"Berlin"/,
  ],
  [
    'patch',
    patched({ op: 'add', path: '/spec/x' }, { op: 'remove', path: '/status' }),
    patched({ op: 'remove', path: '/status' }),
    patched({ op: 'remove', path: '/status' }, { op: 'remove', path: '/kind' }),
    /patchSpecOperations\[1\].*"\/kind"/,
  ],
  [
    'rules',
    configured({ rules: [rule('nodes', 'get'), rule('secrets', 'get')] }),
    configured({ rules: [rule('secrets', 'get')] }),
    configured({ rules: [rule('pods', 'get'), rule('secrets', 'get'), rule('secrets', 'list')] }),
    /rules\[2\]\.resources has "secrets"/,
  ],
];

describe('template policy', () => {
  for (const [name, before, repaired, worse, message] of moves) {
    it(`accepts an update that only moves a stored violation of rule ${name}, and rejects one more of its kind`, () => {
      assert.equal(firstViolation(templatePolicy, repaired, before), undefined);
      assert.notEqual(firstViolation(templatePolicy, repaired), undefined);
      assert.match(firstViolation(templatePolicy, worse, repaired)?.message ?? '', message);
    });
  }

  for (const [title, input] of [
    ['a reference to a workload', template({ controllerTargetRef })],
    ['a podSpec alone', template({ podSpec })],
    ['both', template({ controllerTargetRef, podSpec })],
    ['rules that may be handed out', configured({ rules: [rule('pods/log', 'get'), rule('pods/exec', 'create')] })],
    ['rules of 64 different rights, however often each', withRights(64)],
    [
      'rules instead of exec, with a command that they allow',
      configured({ exec: false, rules: [rule('pods/log', 'get')], accessCommand: logsCommand }),
    ],
    ['allow instead of exec', configured({ exec: false, allow: ['logs'], accessCommand: logsCommand })],
    [
      'sessions through the gateway, with every rule that it passes',
      {
        ...configured({
          session: { via: 'Gateway', idleAfter: '24h' },
          rules: [
            rule('pods', 'get', 'list', 'watch'),
            rule('pods/log', 'get'),
            rule('pods/attach', 'get', 'create'),
            rule('pods/portforward', 'get', 'create'),
          ],
        }),
        grantable: everything,
      },
    ],
    ['recorded sessions', configured({ session: { via: 'Gateway', record: 'Required', recordInput: true } })],
    ['direct, unrecorded sessions', configured({ session: { via: 'Direct', record: 'Off', recordInput: false } })],
    ['direct sessions for groups', configured({ session: { via: 'Direct' }, grantTo: 'AllowedGroups' })],
    ['an ExecAccessTemplate', template({ controllerTargetRef }, {}, 'ExecAccessTemplate')],
    ['a patch with any values', op({ op: 'add', path: '/spec/containers/0/env/-', value: { name: 'A', value: 'b' } })],
    ['a patch of metadata', op({ op: 'move', from: '/metadata/labels/a', path: '/metadata/labels/b' })],
    ['quantities', { ...template({ controllerTargetRef, maxCpu: 2, maxMemory: '2Gi', maxStorage: '10G' }) }],
    ['resources', mutation({ resources: { requests: { cpu: '0' }, limits: { memory: '1Gi' } } })],
  ] as const) {
    it(`accepts ${title}`, () => assert.equal(firstViolation(templatePolicy, input), undefined));
  }

  for (const [title, input, codeAndField, message = /./] of [
    ['a template without a target', template({}), 'InvalidTemplate spec', /controllerTargetRef or podSpec/],
    [
      'an ExecAccessTemplate with a podSpec alone',
      template({ podSpec }, {}, 'ExecAccessTemplate'),
      'InvalidTemplate spec',
      /set controllerTargetRef/,
    ],
    [
      'a workload with a trailing space in its name',
      template({ controllerTargetRef: { ...controllerTargetRef, name: 'cart ' } }),
      'InvalidTemplate controllerTargetRef.name',
      /^spec\.controllerTargetRef\.name: no Deployment can be named "cart "; write "cart", without spaces around it$/,
    ],
    [
      'a workload with a name in capitals, also for the other kind',
      template({ controllerTargetRef: { ...controllerTargetRef, name: 'Cart' } }, {}, 'ExecAccessTemplate'),
      'InvalidTemplate controllerTargetRef.name',
      /can be named "Cart"; names have .*: write the name of the workload$/,
    ],
    ['a default above maximum', configured({ defaultDuration: '48h' }), 'InvalidDuration accessConfig.defaultDuration'],
    ['odd containers', template({ podSpec: { containers: [null] } }), 'InvalidTemplate podSpec.containers'],
    ['a podSpec without containers', template({ podSpec: {} }), 'InvalidTemplate podSpec.containers'],
    [
      'a path outside the pod template',
      op({ op: 'add', path: '/status', value: 1 }),
      'InvalidTemplate controllerTargetMutationConfig.patchSpecOperations[1].path',
    ],
    [
      'a source outside the pod template',
      op({ op: 'copy', from: '/kind', path: '/spec/x' }),
      'InvalidTemplate controllerTargetMutationConfig.patchSpecOperations[1].from',
    ],
    [
      'a path for the whole template',
      op({ op: 'replace', path: '', value: {} }),
      'InvalidTemplate controllerTargetMutationConfig.patchSpecOperations[1].path',
    ],
    [
      'an operation without value',
      op({ op: 'add', path: '/spec/x' }),
      'InvalidTemplate controllerTargetMutationConfig.patchSpecOperations[1].value',
      /needs a value/,
    ],
    [
      'approvals by groups that Kubernetes assigns',
      configured({ approvals: { all: [{ name: 'a' }, { name: 'peer', groups: ['devs', 'system:masters'] }] } }),
      'InvalidTemplate accessConfig.approvals.all[1].groups',
    ],
    [
      'an allowed group of spaces',
      configured({ allowedGroups: ['devs', ' '] }),
      'InvalidGroup accessConfig.allowedGroups[1]',
      /is " "; names of groups match letter for letter: remove it$/,
    ],
    [
      'an allowed group with a trailing space',
      configured({ allowedGroups: ['devs', 'sre '] }),
      'InvalidGroup accessConfig.allowedGroups[1]',
      /write "sre", without/,
    ],
    [
      'a group of approvers with a leading tab',
      configured({ approvals: { all: [{ name: 'a' }, { name: 'peer', groups: ['\tdevs'] }] } }),
      'InvalidGroup accessConfig.approvals.all[1].groups[0]',
    ],
    [
      'a group for emergencies with a line break',
      configured({ emergency: { groups: ['oncall\n'] } }),
      'InvalidGroup accessConfig.emergency.groups[0]',
    ],
    ['a cap that is no quantity', template({ podSpec, maxCpu: 'two' }), 'InvalidTemplate maxCpu'],
    ['a cap of zero', template({ podSpec, maxMemory: 0 }), 'InvalidTemplate maxMemory', /must be above zero/],
    [
      'resources that are no quantity',
      mutation({ resources: { limits: { cpu: '1x' } } }),
      'InvalidTemplate controllerTargetMutationConfig.resources.limits.cpu',
    ],
    [
      'a rule on something else',
      configured({ rules: [rule('pods/log', 'get'), rule('secrets', 'get')] }),
      'InvalidTemplate accessConfig.rules[1].resources',
    ],
    [
      'a rule on a subresource of everything',
      configured({ rules: [rule('*/log', 'get')] }),
      'InvalidTemplate accessConfig.rules[0].resources',
    ],
    ['a rule of verb *', configured({ rules: [rule('pods/log', '*')] }), 'InvalidTemplate accessConfig.rules[0].verbs'],
    [
      'a rule of another group',
      configured({ rules: [{ apiGroups: ['', 'metrics.k8s.io'], resources: ['pods'], verbs: ['get'] }] }),
      'InvalidTemplate accessConfig.rules[0].apiGroups',
    ],
    [
      'a rule without verbs',
      configured({ rules: [{ apiGroups: [''], resources: ['pods/log'], verbs: [] }] }),
      'InvalidTemplate accessConfig.rules[0]',
      /rules\[0\] has an empty list; it needs at least one API group, one resource, and one verb$/,
    ],
    ['rules of 65 different rights', withRights(65), 'InvalidTemplate accessConfig.rules', /65 different rights/],
    [
      'neither exec nor anything else, before the default command',
      configured({ exec: false, allow: [] }),
      'InvalidTemplate accessConfig',
      /^spec\.accessConfig has neither allow nor rules and exec is false, .*; add, for example, allow: \[logs\]$/,
    ],
    [
      'exec by a rule, although exec is false',
      configured({
        exec: false,
        accessCommand: logsCommand,
        rules: [rule('pods/log', 'get'), rule('pods/exec', 'create')],
      }),
      'InvalidTemplate accessConfig.rules[1].resources',
      /has "pods\/exec", and spec\.accessConfig\.exec is false; remove one of them/,
    ],
    [
      'the default command without exec',
      configured({ exec: false, rules: [rule('pods/log', 'get')] }),
      'InvalidAccessCommand accessConfig.accessCommand',
      /^accessCommand is kubectl exec, the default, and exec is false; write what the rules allow, such as kubectl logs -f /,
    ],
    [
      'a subresource that Pods do not have, before the default command',
      configured({ exec: false, rules: [rule('pods/logs', 'get')] }),
      'NotGrantable accessConfig',
      /Pods have no subresource "logs"/,
    ],
    [
      'a rule with another API group, before the default command',
      configured({ exec: false, rules: [{ apiGroups: ['v1'], resources: ['pods/log'], verbs: ['get'] }] }),
      'InvalidTemplate accessConfig.rules[0].apiGroups',
    ],
    [
      'a word in allow that is not grantable here',
      configured({ allow: ['logs', 'port-forward'] }),
      'NotGrantable accessConfig',
      /^spec\.accessConfig hands out get pods\/portforward, create pods\/portforward, which .*; for pods\/portforward it allows nothing;/,
    ],
    [
      'rules that are not grantable here',
      configured({ rules: [rule('pods/log', 'get'), rule('pods/portforward', 'get', 'create')] }),
      'NotGrantable accessConfig',
      /hands out get pods\/portforward, create pods\/portforward, which .*; for pods\/portforward it allows nothing; write what it allows, or ask an administrator to add the rest to the chart value grantable$/,
    ],
    [
      'another verb than the grantable ones',
      configured({ rules: [rule('pods/log', 'list'), rule('pods', 'patch')] }),
      'NotGrantable accessConfig',
      /hands out list pods\/log, patch pods, which .*; for pods\/log it allows get; for pods it allows get, list, watch; write what/,
    ],
    [
      'rights on many resources, and says for three of them what is allowed',
      configured({ rules: ['attach', 'proxy', 'resize', 'eviction'].map((name) => rule(`pods/${name}`, 'get')) }),
      'NotGrantable accessConfig',
      /get pods\/eviction, which .*; for pods\/resize it allows nothing; write what/,
    ],
    [
      'approvals of access for whole groups',
      configured({ grantTo: 'AllowedGroups', approvals: { all: [{ name: 'peer', count: 1 }] } }),
      'InvalidTemplate accessConfig.grantTo',
      /approvals is set; .* set grantTo to Requester/,
    ],
    [
      'sessions through the gateway for whole groups',
      configured({ grantTo: 'AllowedGroups', session: { via: 'Gateway' } }),
      'InvalidTemplate accessConfig.grantTo',
      /is AllowedGroups, and session.via is Gateway; .* set grantTo to Requester/,
    ],
    [
      'an idle limit of direct sessions, which nothing would enforce',
      configured({ session: { via: 'Direct', idleAfter: '15m' } }),
      'InvalidTemplate accessConfig.session.idleAfter',
    ],
    ...['BestEffort', 'Required'].map(
      (record) =>
        [
          `recordings (${record}) of direct sessions, which nothing would record`,
          configured({ session: { via: 'Direct', record } }),
          'InvalidTemplate accessConfig.session.record',
        ] as const,
    ),
    [
      'recorded input of sessions that are not recorded',
      configured({ session: { via: 'Gateway', recordInput: true } }),
      'InvalidTemplate accessConfig.session.recordInput',
    ],
    ...['59s', '24h1s', 'soon'].map(
      (idleAfter) =>
        [
          `an idle limit of ${idleAfter}`,
          configured({ session: { via: 'Gateway', idleAfter } }),
          'InvalidTemplate accessConfig.session.idleAfter',
        ] as const,
    ),
    ...(
      [
        ['pods/log', 'create'],
        ['pods/exec', 'delete'],
        ['pods', 'delete'],
        ['pods/ephemeralcontainers', 'patch'],
        ['pods/proxy', 'get'],
      ] as const
    ).map(
      ([resource, verb]) =>
        [
          `sessions through the gateway with ${verb} on ${resource}, which it does not pass`,
          { ...configured({ session: { via: 'Gateway' }, rules: [rule(resource, verb)] }), grantable: everything },
          'InvalidTemplate accessConfig.rules',
          new RegExp(`hands out ${verb} ${resource}, which the gateway does not pass`),
        ] as const,
    ),
    [
      'emergency access for all authenticated users',
      configured({ emergency: { groups: ['oncall', 'system:authenticated'] } }),
      'InvalidTemplate accessConfig.emergency.groups',
    ],
    [
      'a pattern with lookahead',
      configured({ reason: { minLength: 1, pattern: '(?=x)' } }),
      'InvalidTemplate accessConfig.reason.pattern',
    ],
  ] as [string, TemplateInput, string, RegExp?][]) {
    it(`denies ${title}`, () => {
      const violation = firstViolation(templatePolicy, input);
      assert.equal(`${violation?.code} ${violation?.field?.replace('spec.', '')}`, codeAndField);
      assert.match(violation?.message ?? '', message);
    });
  }

  for (const [name, before, after, message] of additions) {
    it(`denies an update by the violations of ${name} that it adds, not by those that stay`, () => {
      const { [name]: only } = templatePolicy;
      assert.ok(only);
      assert.match(firstViolation({ only }, after, before)?.message ?? '', message);
      assert.notEqual(firstViolation({ only }, before), undefined);
      assert.equal(firstViolation({ only }, before, after), undefined);
    });
  }

  for (const [title, input, message] of [
    ['no groups', configured({ allowedGroups: [] }), /allowedGroups is empty/],
    ['a grant to whole groups', configured({ grantTo: 'AllowedGroups' }), /not only to the requester/],
    [
      'extensions that the longest access cannot have',
      configured({ maxDuration: '4h', extension: { times: 1, total: '2h', approvals: 'Same' } }),
      /extension\.total 2h is less than maxDuration 4h: .*; raise total above maxDuration$/,
    ],
    ['privileged pods, which also need a label', template({ podSpec, allowPrivilegedPod: true }), /: kubectl label /],
    [
      'a patch by which the kubelet ends the pod before its access',
      op({ op: 'add', path: '/spec/activeDeadlineSeconds', value: 5 }),
      /^spec\.controllerTargetMutationConfig\.patchSpecOperations\[1\] sets activeDeadlineSeconds to 5, so access ends after 5 s at the latest, although the durations of the template allow 24 h; raise it to at least 86400, or remove it$/,
    ],
    [
      'a podSpec by which the kubelet ends the pod before its longest access',
      template({ podSpec: { ...podSpec, activeDeadlineSeconds: 86_399 } }),
      /^spec\.podSpec sets activeDeadlineSeconds to 86399, so .* at least 86400, or remove it$/,
    ],
    [
      'a podSpec by which the kubelet ends the pod before access with all extensions',
      template(
        { podSpec: { ...podSpec, activeDeadlineSeconds: 86_400 } },
        { extension: { times: 2, total: '26h', approvals: 'None' } },
      ),
      /^spec\.podSpec sets activeDeadlineSeconds to 86400, so .* allow 26 h; raise it to at least 93600, or remove it$/,
    ],
    [
      'a patch with a deadline that the server does not use',
      op({ op: 'replace', path: '/spec/activeDeadlineSeconds', value: '300' }),
      /^spec\.controllerTargetMutationConfig\.patchSpecOperations\[1\] sets activeDeadlineSeconds to "300", which is not a whole number from 1 up, so the server uses the granted time instead; remove it$/,
    ],
    [
      'a podSpec with the deadline 0',
      template({ podSpec: { ...podSpec, activeDeadlineSeconds: 0 } }),
      /^spec\.podSpec sets activeDeadlineSeconds to 0, which is not a whole number from 1 up, so the server uses the granted time instead; remove it$/,
    ],
    [
      'a link that no request gets',
      configured({ reason: { minLength: 1, link: 'https://tickets.example.org/{match}' } }),
      /^spec\.accessConfig\.reason\.link has \{match\}, but no pattern is set, so no request gets a link; set pattern, or remove \{match\}$/,
    ],
    ['both targets', template({ podSpec, controllerTargetRef }), /the server ignores podSpec; remove one of them/],
    [
      'a mutation without a target',
      template({ podSpec, controllerTargetMutationConfig: {} }),
      /ignores spec\.controllerTargetMutationConfig without/,
    ],
  ] as const) {
    it(`warns about ${title}`, () => {
      const warnings = templateWarnings(input);
      assert.equal(warnings.length, 1);
      assert.match(warnings[0] ?? '', message);
    });
  }

  it('has no warning about a deadline of the pod that is no shorter than its longest access, or that is removed', () => {
    const deadline = (activeDeadlineSeconds: unknown) => template({ podSpec: { ...podSpec, activeDeadlineSeconds } });
    const inputs = [
      deadline(86_400),
      patched(
        { op: 'add', path: '/spec/activeDeadlineSeconds', value: 5 },
        { op: 'remove', path: '/spec/activeDeadlineSeconds' },
      ),
      op({ op: 'remove', path: '/spec/activeDeadlineSeconds' }),
    ];
    for (const input of inputs) assert.deepEqual(templateWarnings(input), []);
  });

  it('has no warning about an ordinary template', () => {
    assert.deepEqual(templateWarnings(template({ controllerTargetRef })), []);
  });

  const remedies: [title: string, input: TemplateInput, rule: string, remedy: RegExp][] = [
    [
      'the group with a space, even if another rule denies first',
      configured({ allowedGroups: ['system:masters', 'devs '] }),
      'group-names',
      /in spec\.accessConfig\.allowedGroups\[1\]$/,
    ],
    [
      'the name of a workload that no object can have',
      template({ controllerTargetRef: { ...controllerTargetRef, name: 'cart ' } }),
      'target',
      /^correct spec\.controllerTargetRef\.name$/,
    ],
    ['the operation of a patch', op({ op: 'remove', path: '/status' }), 'patch', /^correct .*Operations\[1\]\.path$/],
    [
      'a subresource that Pods do not have',
      configured({ rules: [rule('pods/logs', 'get')] }),
      'grantable',
      /^Pods have no subresource "logs", only .*; correct the name$/,
    ],
    [
      'the group that Kubernetes reserves',
      configured({ allowedGroups: ['devs', 'system:masters'] }),
      'groups',
      /^correct the groups: spec\.accessConfig\.allowedGroups has "system:masters"; .*; name the groups of the people who may request /,
    ],
    [
      'the placeholder that a command must not have',
      configured({ accessCommand: 'kubectl exec -ti {{ .Pod.Name }} -- sh' }),
      'access-command',
      /^correct the command: accessCommand contains "\{\{ \.Pod\.Name \}\}"; only these placeholders are allowed: /,
    ],
    [
      'a command without exec, if exec is false',
      configured({ exec: false, rules: [rule('pods/log', 'get')] }),
      'access-command',
      /^correct the command: accessCommand is kubectl exec, .*; write what the rules allow, such as kubectl logs -f /,
    ],
  ];
  for (const [title, input, name, remedy] of remedies) {
    it(`names in a dry run ${title}`, () => {
      const found = explain(templatePolicy, input).find(({ rule: its }) => its === name);
      assert.equal(found?.verdict, 'fail');
      assert.match(found?.remedy ?? '', remedy);
    });
  }

  it('finds rights that are not grantable also beside invalid rules, so that a repair is no new violation', () => {
    const mixed = [
      rule('pods', 'delete'),
      rule('secrets', 'get'),
      { ...rule('pods/proxy', 'get'), verbs: ['get', '*'] },
    ];
    const stored = configured({ rules: mixed });
    assert.equal(firstViolation(templatePolicy, stored)?.code, 'InvalidTemplate');
    for (const left of [[0, 2], [1, 2], [0], []]) {
      const repaired = configured({ rules: left.flatMap((index) => mixed[index] ?? []) });
      assert.equal(firstViolation(templatePolicy, repaired, stored), undefined, `rules ${left}`);
    }
    const added = configured({ rules: [...mixed, rule('pods/ephemeralcontainers', 'patch')] });
    assert.equal(firstViolation(templatePolicy, added, stored)?.code, 'NotGrantable');
  });

  it('sends no one to an administrator with rules that are invalid', () => {
    const input = configured({ rules: [rule('secrets', 'get')] });
    const verdicts = explain(templatePolicy, input).filter(({ rule: name }) => ['rules', 'grantable'].includes(name));
    assert.deepEqual(pluck(verdicts, 'verdict'), ['fail', 'unknown']);
  });
});
