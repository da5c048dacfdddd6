import assert from 'node:assert/strict';
import { roleBindingOf, roleOf, subjectsOf, toRbacSubject } from '../../../src/rbac/roles.ts';

const metadata = { name: 'a', namespace: 'b' };

const user = (name: string) => ({ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }) as const;

describe('roles', () => {
  it('are plain rbac/v1 objects', () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], resourceNames: ['x'], verbs: ['get'] }] as const;
    assert.deepEqual(roleOf(metadata, rules), {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata,
      rules,
    });
  });

  it('are bound by name, in their own namespace', () => {
    assert.deepEqual(roleBindingOf(metadata, 'r', [user('alice')]), {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
      subjects: [{ kind: 'User', name: 'alice', apiGroup: 'rbac.authorization.k8s.io' }],
    });
  });
});

describe('subjects of a grant', () => {
  const requester = { username: 'alice' };
  for (const [title, config, subjects] of [
    ['the requester', { allowedGroups: ['devs'], grantTo: 'Requester' as const }, [{ kind: 'User', name: 'alice' }]],
    [
      'every allowed group',
      { allowedGroups: ['devs', 'sre'], grantTo: 'AllowedGroups' as const },
      [
        { kind: 'Group', name: 'devs' },
        { kind: 'Group', name: 'sre' },
      ],
    ],
    [
      'the requester when no group is allowed',
      { allowedGroups: [], grantTo: 'AllowedGroups' as const },
      [{ kind: 'User', name: 'alice' }],
    ],
  ] as const) {
    it(`are ${title}`, () => {
      assert.deepEqual(subjectsOf({ ...config, allowedGroups: [...config.allowedGroups] }, requester), subjects);
    });
  }

  it('become subjects of RBAC', () => {
    assert.deepEqual(toRbacSubject({ kind: 'Group', name: 'devs' }), { ...user('devs'), kind: 'Group' });
    assert.deepEqual(toRbacSubject({ kind: 'User', name: 'alice' }), user('alice'));
  });
});
