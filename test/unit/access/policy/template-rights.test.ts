import assert from 'node:assert/strict';
import type { TemplateInput } from '../../../../src/access/policy/template-policy.ts';
import { authorLacks, type Right, rightsHandedOut } from '../../../../src/access/policy/template-rights.ts';

const rights = (kind: TemplateInput['kind'], spec: object = {}): string[] =>
  rightsHandedOut({ kind, name: 'shell', spec: { accessConfig: {}, ...spec } as TemplateInput['spec'] }).map(
    ({ verb, resource, subresource = '', name = '' }) => [verb, resource, subresource, name].join(' ').trim(),
  );

describe('what a template hands out', () => {
  const exec = ['get pods', 'list pods', 'watch pods', 'get pods exec', 'create pods exec'];

  it('is to see and to exec into pods', () => assert.deepEqual(rights('ExecAccessTemplate'), exec));

  it('is pods as well, where we make one', () =>
    assert.deepEqual(rights('PodAccessTemplate'), [...exec, 'create pods']));

  it('is privilege, where the flag is set, and only there', () => {
    const flagged = rights('PodAccessTemplate', { allowPrivilegedPod: true });
    assert.deepEqual(flagged.at(-1), 'allow-privileged podaccesstemplates  shell');
    assert.equal(rights('PodAccessTemplate', { allowPrivilegedPod: false }).length, exec.length + 1);
  });

  it('is what its rules add, on all pods, because nobody knows yet on which', () => {
    const rules = [{ apiGroups: [''], resources: ['pods/log', 'pods'], verbs: ['get'] }];
    assert.deepEqual(rights('ExecAccessTemplate', { accessConfig: { rules } }), [...exec, 'get pods log', 'get pods']);
  });

  it('is told to an author who lacks it', () => {
    const [, , , , createExec] = rightsHandedOut({
      kind: 'ExecAccessTemplate',
      name: 'x',
      spec: { accessConfig: {} } as TemplateInput['spec'],
    });
    const lacking: Right[] = createExec ? [createExec] : [];
    assert.equal(
      authorLacks('erin', 'payments', lacking)?.message,
      'a template hands out only what its author may do, and "erin" may not create pods/exec in namespace "payments"; let somebody apply it who may',
    );
    assert.equal(authorLacks('erin', 'payments', []), undefined);
  });
});
