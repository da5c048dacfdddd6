import assert from 'node:assert/strict';
import {
  authorPermissionsViolation,
  type Permission,
  permissionsHandedOut,
  permissionsToHold,
} from '../../../../src/access/policy/template-permissions.ts';
import type { TemplateInput } from '../../../../src/access/policy/template-policy.ts';

const rights = (kind: TemplateInput['kind'], spec: object = {}): string[] =>
  permissionsHandedOut({ kind, name: 'shell', spec: { accessConfig: {}, ...spec } as TemplateInput['spec'] }).map(
    ({ verb, resource, subresource = '', name = '' }) => [verb, resource, subresource, name].join(' ').trim(),
  );

describe('the permissions that a template grants', () => {
  const exec = ['get pods', 'list pods', 'watch pods', 'get pods exec', 'create pods exec'];

  it('are to read pods and to exec into them', () => assert.deepEqual(rights('ExecAccessTemplate'), exec));

  it('include the creation of pods, if it creates one', () =>
    assert.deepEqual(rights('PodAccessTemplate'), [...exec, 'create pods']));

  it('include privilege only with the flag', () => {
    const flagged = rights('PodAccessTemplate', { allowPrivilegedPod: true });
    assert.deepEqual(flagged.at(-1), 'allow-privileged podaccesstemplates  shell');
    assert.equal(rights('PodAccessTemplate', { allowPrivilegedPod: false }).length, exec.length + 1);
  });

  it('include those of its rules, on all pods, because the pod is not known yet', () => {
    const rules = [{ apiGroups: [''], resources: ['pods/log', 'pods'], verbs: ['get', 'delete'] }];
    const added = ['get pods log', 'delete pods log', 'delete pods'];
    assert.deepEqual(rights('ExecAccessTemplate', { accessConfig: { rules } }), [...exec, ...added]);
  });

  it('include those of allow, before those of its rules', () => {
    const rules = [{ apiGroups: [''], resources: ['pods/attach'], verbs: ['get'] }];
    const accessConfig = { allow: ['port-forward', 'logs'], rules };
    const added = ['get pods portforward', 'create pods portforward', 'get pods log', 'get pods attach'];
    assert.deepEqual(rights('ExecAccessTemplate', { accessConfig }), [...exec, ...added]);
    const held = permissionsToHold({ kind: 'ExecAccessTemplate', name: 'both', spec: { accessConfig } } as never);
    assert.deepEqual(
      held.map(({ verb, resource, subresource }) => `${verb} ${resource} ${subresource}`),
      ['create pods exec', ...added],
    );
  });

  it('are only to read pods and those of its rules without exec, also for those who need no group', () => {
    const rules = [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }];
    const logsOnly = {
      kind: 'ExecAccessTemplate',
      name: 'logs',
      spec: { accessConfig: { exec: false, rules } },
    } as never;
    const paths = (permissions: readonly Permission[]) =>
      permissions.map(({ verb, subresource = '' }) => `${verb} ${subresource}`);
    const expected = ['get ', 'list ', 'watch ', 'get log'];
    assert.deepEqual(paths(permissionsHandedOut(logsOnly)), expected);
    assert.deepEqual(paths(permissionsToHold(logsOnly)), expected);
  });

  it('are distinct, however often its rules repeat them', () => {
    const resources = ['pods', 'pods', 'pods/exec', 'pods/exec'];
    const rule = {
      apiGroups: ['', ''],
      resources,
      verbs: ['get', 'get', 'list', 'list', 'get', 'list', 'get', 'list'],
    };
    const accessConfig = { rules: Array.from({ length: 8 }, () => rule) };
    assert.deepEqual(rights('ExecAccessTemplate', { accessConfig }), [...exec, 'list pods exec']);
  });

  it('are listed to an author without them', () => {
    const [, , , , createExec] = permissionsHandedOut({
      kind: 'ExecAccessTemplate',
      name: 'x',
      spec: { accessConfig: {} } as TemplateInput['spec'],
    });
    const lacking: Permission[] = createExec ? [createExec] : [];
    assert.equal(
      authorPermissionsViolation('erin', 'payments', lacking, 'to apply it')?.message,
      'author "erin" may not create pods/exec in namespace "payments"; a template hands out only what its author may do: ask someone who holds all of its permissions to apply it',
    );
    assert.equal(authorPermissionsViolation('erin', 'payments', [], 'to apply it'), undefined);
  });
});

describe('the permissions that a caller without an allowed group needs', () => {
  const toHold = (kind: TemplateInput['kind'], spec: object = {}): string[] =>
    permissionsToHold({ kind, name: 'shell', spec: { accessConfig: {}, ...spec } as TemplateInput['spec'] }).map(
      ({ verb, resource, subresource = '' }) => [verb, resource, subresource].join(' ').trim(),
    );
  const rules = [{ apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }];
  const rows: [string, TemplateInput['kind'], object, string[]][] = [
    ['are exec, for running pods', 'ExecAccessTemplate', {}, ['create pods exec']],
    ['include the creation of a pod of the template', 'PodAccessTemplate', {}, ['create pods exec', 'create pods']],
    ['include its rules', 'ExecAccessTemplate', { accessConfig: { rules } }, ['create pods exec', 'get pods log']],
    [
      'are distinct, even if its rules repeat them',
      'ExecAccessTemplate',
      {
        accessConfig: { rules: [...rules, ...rules, { apiGroups: [''], resources: ['pods/exec'], verbs: ['create'] }] },
      },
      ['create pods exec', 'get pods log'],
    ],
    [
      'include privilege if the pod may have it',
      'PodAccessTemplate',
      { allowPrivilegedPod: true },
      ['create pods exec', 'create pods', 'allow-privileged podaccesstemplates'],
    ],
  ];
  for (const [title, kind, spec, expected] of rows) {
    it(title, () => assert.deepEqual(toHold(kind, spec), expected));
  }
});
