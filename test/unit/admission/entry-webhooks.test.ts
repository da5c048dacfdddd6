import assert from 'node:assert/strict';
import { maxEntryBytes } from '../../../src/api/inventory/names.ts';
import { paths, reviewOf, World } from './support.ts';

const bob = { username: 'bob', uid: 'u-2', groups: ['ops'] };
const ref = { name: 'byoc-1', key: 'config' };
const vouched = { username: 'alice', uid: 'u-1', groups: ['devs'] };
const object = (spec: object) => ({ metadata: { name: 'rt-1', namespace: 'fleet' }, spec: { mode: 'byoc', ...spec } });

describe('the setter of a kubeconfig Secret', () => {
  const stamped = async (operation: string, now: object, before?: object, userInfo: object = bob) => {
    const review = reviewOf('clusterinventories', operation, {
      userInfo,
      object: object(now),
      oldObject: before ? object(before) : null,
    });
    const answer = await new World().review(paths.attestKubeconfigSetter, review);
    assert.equal(answer.allowed, true, answer.status?.message);
    return JSON.parse(Buffer.from(answer.patch ?? '', 'base64').toString() || '[]') as unknown[];
  };
  const set = (value: object) => [{ op: 'add', path: '/spec/kubeconfigSetBy', value }];

  it('is the caller, whatever the client sent', async () => {
    assert.deepEqual(await stamped('CREATE', { kubeconfigSecretRef: ref }), set(bob));
    assert.deepEqual(await stamped('CREATE', { kubeconfigSecretRef: ref, kubeconfigSetBy: vouched }), set(bob));
  });

  it('is the caller who changes the reference', async () => {
    const before = { kubeconfigSecretRef: { name: 'other', key: 'config' }, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped('UPDATE', { ...before, kubeconfigSecretRef: ref }, before), set(bob));
    assert.deepEqual(await stamped('UPDATE', { kubeconfigSecretRef: ref }, {}), set(bob));
  });

  it('stays the same if another caller changes or omits it', async () => {
    const before = { kubeconfigSecretRef: ref, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped('UPDATE', { ...before, cluster: { a: 1 } }, before), []);
    assert.deepEqual(await stamped('UPDATE', { ...before, kubeconfigSetBy: bob }, before), set(vouched));
    assert.deepEqual(await stamped('UPDATE', { kubeconfigSecretRef: ref }, before), set(vouched));
  });

  it('is absent without a reference', async () => {
    const before = { kubeconfigSecretRef: ref, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped('UPDATE', { kubeconfigSetBy: vouched }, before), [
      { op: 'remove', path: '/spec/kubeconfigSetBy' },
    ]);
    assert.deepEqual(await stamped('CREATE', {}), []);
  });

  it('has what SubjectAccessReviews need, and nothing about the credential', async () => {
    const extra = { 'example.org/tenant': ['a'], 'authentication.kubernetes.io/credential-id': ['JTI=1'] };
    const patch = await stamped('CREATE', { kubeconfigSecretRef: ref }, undefined, { ...bob, extra });
    assert.deepEqual(patch, set({ ...bob, extra: { 'example.org/tenant': ['a'] } }));
  });

  it('cannot be anonymous', async () => {
    const userInfo = { username: '', uid: '', groups: [] };
    const review = reviewOf('clusterinventories', 'CREATE', { userInfo, object: object({ kubeconfigSecretRef: ref }) });
    const answer = await new World().review(paths.attestKubeconfigSetter, review);
    assert.match(answer.status?.message ?? '', /^MissingIdentity: /);
  });
});

describe('entries that are too large', () => {
  const large = object({ cluster: { notes: 'x'.repeat(maxEntryBytes) } });

  for (const subResource of ['', 'status']) {
    it(`are denied to every caller, ${subResource === '' ? 'the object' : 'its status'}, with the size`, async () => {
      const world = new World();
      const review = reviewOf('clusterinventories', 'UPDATE', { subResource, object: large, oldObject: object({}) });
      const answer = await world.review(paths.size, review);
      assert.deepEqual([answer.allowed, answer.status?.code], [false, 413]);
      assert.match(
        answer.status?.message ?? '',
        /^EntryTooLarge: the entry would have \d+ bytes; at most 65536 are allowed/,
      );
      assert.equal(world.lines.length, 1);
    });
  }

  it('leave an audit line, and others none', async () => {
    const world = new World();
    const answer = await world.review(paths.size, reviewOf('clusterinventories', 'CREATE', { object: object({}) }));
    assert.deepEqual([answer.allowed, world.lines], [true, []]);
  });
});

describe('registrations', () => {
  const spec = { endpoint: { inProcess: 'network' } };
  const review = (operation: string, fields: object) =>
    reviewOf('componentreconcilers', operation, { name: 'network', namespace: '', ...fields });
  const other = {
    name: 'vnet',
    spec: { reads: [], writes: ['/status/outputs/network'], kubeconfig: 'none', modes: ['managed'] },
  } as const;
  const registration = (more: object = {}) => ({ metadata: { name: 'network' }, spec: { ...spec, ...more } });

  const cases: [string, object, object, string | undefined][] = [
    ['one alone', review('CREATE', { object: registration() }), {}, undefined],
    ['one whose path is taken', review('CREATE', { object: registration() }), { registrations: [other] }, 'PathTaken'],
    [
      'one that was taken before, when it is labelled',
      review('UPDATE', { object: registration(), oldObject: registration() }),
      { registrations: [other] },
      undefined,
    ],
    [
      'a change to a path that is taken',
      review('UPDATE', { object: registration(), oldObject: registration({ writes: ['/status/outputs/a'] }) }),
      { registrations: [other] },
      'PathTaken',
    ],
    [
      'one that reads its own output',
      review('CREATE', { object: registration({ reads: ['/status/outputs/network'] }) }),
      {},
      'OwnOutputRead',
    ],
    ['an invalid one', review('CREATE', { object: { metadata: { name: 'network' }, spec: 7 } }), {}, 'InvalidSpec'],
    [
      'an invalid selector',
      review('CREATE', { object: registration({ selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }) }),
      {},
      'InvalidSpec',
    ],
    [
      'an invalid caBundle',
      review('CREATE', { object: registration({ caBundle: 'no certificate' }) }),
      {},
      'InvalidSpec',
    ],
    ['the end of one', review('DELETE', { oldObject: registration() }), {}, undefined],
    [
      'the end of one that runs',
      review('DELETE', { oldObject: registration() }),
      { anyRun: 'fleet/a.network' },
      'HasRuns',
    ],
    [
      'the end of one that runs, among others that are deleted as a collection',
      review('DELETE', { name: '', oldObject: registration() }),
      { anyRun: 'fleet/a.network' },
      'HasRuns',
    ],
  ];
  for (const [what, request, changes, code] of cases) {
    it(`${code ? `are denied: ${code} for` : 'may be'} ${what}`, async () => {
      const world = Object.assign(new World(), changes);
      const answer = await world.review(paths.registration, request as Record<string, unknown>);
      assert.equal(answer.allowed, code === undefined, answer.status?.message);
      if (code) assert.match(answer.status?.message ?? '', new RegExp(`^${code}: `));
      assert.equal(world.lines.length, 1);
    });
  }
});
