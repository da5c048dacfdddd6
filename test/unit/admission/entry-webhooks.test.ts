import assert from 'node:assert/strict';
import { maxEntryBytes } from '../../../src/api/inventory/names.ts';
import type { RegisteredComponent } from '../../../src/inventory/policy/setting-warnings.ts';
import { allowed, patchOf, paths, reviewOf, World } from './support.ts';

const bob = { username: 'bob', uid: 'u-2', groups: ['ops'] };
const ref = { name: 'byoc-1', key: 'config' };
const vouched = { username: 'alice', uid: 'u-1', groups: ['devs'] };
const anonymous = { username: '', uid: '', groups: [] };
const network: RegisteredComponent = { name: 'network', modes: ['byoc'], selects: () => true, reads: [] };
const cluster: RegisteredComponent = { ...network, name: 'cluster', modes: ['managed'] };
const object = (spec: object) => ({ metadata: { name: 'rt-1', namespace: 'fleet' }, spec: { mode: 'byoc', ...spec } });

/** The patch by the mutating webhook when the user creates the entry, or updates it. */
const attested = async (now: object, before?: object, userInfo: object = bob) => {
  const operation = before ? 'UPDATE' : 'CREATE';
  const review = reviewOf('clusterinventories', operation, { userInfo, object: now, oldObject: before ?? null });
  return patchOf(await allowed(new World().review(paths.attestEntry, review)));
};

describe('the setter of a kubeconfig Secret', () => {
  const stamped = (now: object, before?: object, userInfo?: object) =>
    attested(object(now), before && object(before), userInfo);
  const set = (value: object) => [{ op: 'add', path: '/spec/kubeconfigSetBy', value }];

  it('is the caller, whatever the client sent', async () => {
    assert.deepEqual(await stamped({ kubeconfigSecretRef: ref }), set(bob));
    assert.deepEqual(await stamped({ kubeconfigSecretRef: ref, kubeconfigSetBy: vouched }), set(bob));
  });

  it('is the caller who changes the reference', async () => {
    const before = { kubeconfigSecretRef: { name: 'other', key: 'config' }, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped({ ...before, kubeconfigSecretRef: ref }, before), set(bob));
    assert.deepEqual(await stamped({ kubeconfigSecretRef: ref }, {}), set(bob));
  });

  it('stays the same if another caller changes or omits it', async () => {
    const before = { kubeconfigSecretRef: ref, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped({ ...before, cluster: { a: 1 } }, before), []);
    assert.deepEqual(await stamped({ ...before, kubeconfigSetBy: bob }, before), set(vouched));
    assert.deepEqual(await stamped({ kubeconfigSecretRef: ref }, before), set(vouched));
  });

  it('is absent without a reference', async () => {
    const before = { kubeconfigSecretRef: ref, kubeconfigSetBy: vouched };
    assert.deepEqual(await stamped({ kubeconfigSetBy: vouched }, before), [
      { op: 'remove', path: '/spec/kubeconfigSetBy' },
    ]);
    assert.deepEqual(await stamped({}), []);
  });

  it('has what SubjectAccessReviews need, and nothing about the credential', async () => {
    const extra = { 'example.org/tenant': ['a'], 'authentication.kubernetes.io/credential-id': ['JTI=1'] };
    const patch = await stamped({ kubeconfigSecretRef: ref }, undefined, { ...bob, extra });
    assert.deepEqual(patch, set({ ...bob, extra: { 'example.org/tenant': ['a'] } }));
  });

  it('cannot be anonymous', async () => {
    const given = object({ kubeconfigSecretRef: ref });
    const review = reviewOf('clusterinventories', 'CREATE', { userInfo: anonymous, object: given });
    const answer = await new World().review(paths.attestEntry, review);
    assert.match(answer.status?.message ?? '', /^MissingIdentity: /);
  });
});

describe('the user who abandons a component', () => {
  const abandon = 'abandon.inventory.drawbridge.dev/network';
  const by = 'abandoned-by.inventory.drawbridge.dev/network';
  const set = (value: object) => [{ op: 'add', path: '/metadata/annotations', value }];
  const annotated = (annotations: object) => ({ metadata: { name: 'rt-1', annotations }, spec: { mode: 'byoc' } });
  const attestedWith = (now: object, before?: object) => attested(annotated(now), before && annotated(before));

  it('is the caller, whatever the client sent', async () => {
    assert.deepEqual(await attestedWith({ [abandon]: 'lost' }), set({ [abandon]: 'lost', [by]: 'bob' }));
    assert.deepEqual(
      await attestedWith({ other: '1', [abandon]: 'lost', [by]: 'alice' }, {}),
      set({ other: '1', [abandon]: 'lost', [by]: 'bob' }),
    );
  });

  it('is the caller who changes the reason', async () => {
    const before = { [abandon]: 'lost', [by]: 'alice' };
    assert.deepEqual(await attestedWith({ ...before, [abandon]: 'x' }, before), set({ [abandon]: 'x', [by]: 'bob' }));
  });

  it('stays the same if another caller changes or omits it', async () => {
    const before = { [abandon]: 'lost', [by]: 'alice' };
    assert.deepEqual(await attestedWith({ ...before, other: '1' }, before), []);
    assert.deepEqual(await attestedWith({ ...before, [by]: 'carol' }, before), set(before));
    assert.deepEqual(await attestedWith({ [abandon]: 'lost' }, before), set(before));
  });

  it('stays unknown if another caller changes the entry', async () => {
    const before = { [abandon]: 'lost' };
    const other = 'abandon.inventory.drawbridge.dev/gateway';
    const otherBy = 'abandoned-by.inventory.drawbridge.dev/gateway';
    assert.deepEqual(await attestedWith({ ...before, other: '1' }, before), []);
    assert.deepEqual(await attestedWith({ ...before, [by]: 'alice' }, before), set(before));
    const after = { ...before, [other]: 'x' };
    assert.deepEqual(await attestedWith(after, before), set({ ...after, [otherBy]: 'bob' }));
  });

  it('goes with the annotation', async () => {
    const before = { [abandon]: 'lost', [by]: 'alice' };
    assert.deepEqual(await attestedWith({ [by]: 'alice' }, before), set({}));
    assert.deepEqual(await attestedWith({}, before), []);
  });

  it('cannot be anonymous', async () => {
    const given = annotated({ [abandon]: 'x' });
    const review = reviewOf('clusterinventories', 'CREATE', { userInfo: anonymous, object: given });
    const answer = await new World().review(paths.attestEntry, review);
    assert.match(answer.status?.message ?? '', /^MissingIdentity: /);
  });

  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`abandon.inventory.drawbridge.dev/a${n}`, '']));
  const review = (now: object, before: object) =>
    reviewOf('clusterinventories', 'UPDATE', { object: annotated(now), oldObject: annotated(before) });

  it('abandons at most 64 components', async () => {
    assert.equal((await new World().review(paths.attestEntry, review(many(64), {}))).allowed, true);
    const denied = await new World().review(paths.attestEntry, review(many(65), {}));
    assert.deepEqual([denied.allowed, denied.status?.code], [false, 422]);
    assert.match(denied.status?.message ?? '', /^TooManyAbandonments: .* would name 65 components;/);
  });

  it('may remove some of too many, in one operation', async () => {
    const before = many(2000);
    const reasons = Object.fromEntries(Object.keys(many(1999)).map((key) => [key, 'new']));
    assert.equal((await attestedWith(reasons, before)).length, 1);
    assert.equal((await new World().review(paths.attestEntry, review(many(2001), before))).allowed, false);
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
      assert.match(answer.status?.message ?? '', /^EntryTooLarge: the entry would have \d+ bytes;/);
      assert.equal(world.lines.length, 1);
    });
  }

  it('leave an audit line, and others none', async () => {
    const world = new World();
    const answer = await world.review(paths.size, reviewOf('clusterinventories', 'CREATE', { object: object({}) }));
    assert.deepEqual([answer.allowed, world.lines], [true, []]);
  });
});

/** The warnings about a new entry, or about an update, while these components are registered. */
const warningsOf = async (
  registered: readonly RegisteredComponent[],
  now: object,
  before?: object,
  subResource = '',
) => {
  const world = Object.assign(new World(), { registered });
  const operation = before ? 'UPDATE' : 'CREATE';
  const review = reviewOf('clusterinventories', operation, { subResource, object: now, oldObject: before ?? null });
  return (await allowed(world.review(paths.size, review))).warnings ?? [];
};

describe('settings of components', () => {
  const selects = (labels: object): boolean => 'gold' in labels;
  const gold: RegisteredComponent = { ...network, name: 'gold', selects, reads: ['/spec/components/network/tier'] };
  const warnings = (operation: string, components: object, before: object = {}, subResource = '') => {
    const oldObject = operation === 'CREATE' ? undefined : object({ components: before });
    return warningsOf([network, cluster, gold], object({ components }), oldObject, subResource);
  };

  it('are warned about if no component runs for the entry', async () => {
    assert.deepEqual(await warnings('CREATE', { network: {}, netwrok: {}, cluster: {}, gold: {} }), [
      `spec.components.netwrok has no effect: no component netwrok is registered; registered: cluster, gold, network; correct the name, or register the component`,
      `spec.components.cluster has no effect: component cluster does not run in mode byoc; it runs in managed; remove this setting`,
      `spec.components.gold has no effect: the selector of component gold does not match the labels of the entry; label the entry as the selector requires (kubectl get componentreconciler gold -o jsonpath='{.spec.selector}'), or remove this setting`,
    ]);
  });

  it('are warned about if they contain a field that the schema and the registrations do not have', async () => {
    const text = (field: string) =>
      `spec.components.network.${field} is ignored: the fields are config and enabled, and no registration has this one in its reads; correct the name, or move the field to spec.components.network.config`;
    const before = { network: { enabled: true, config: {}, tier: { size: 1 }, enable: false } };
    assert.deepEqual(await warnings('CREATE', before), [text('enable')]);
    const added = await warnings('UPDATE', { network: { ...before.network, confg: {} } }, before);
    assert.deepEqual(added, [text('confg')]);
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`a${n}`, n]));
    assert.equal(countOf(await warnings('CREATE', { network: many })), 64);
  });

  it('cause at most 64 warnings, whatever a forged review has', async () => {
    const components = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`a${n}`, {}]));
    assert.equal(countOf(await warnings('CREATE', components)), 64);
  });

  it('are warned about once', async () => {
    assert.equal((await warnings('UPDATE', { netwrok: {} })).length, 1);
    assert.deepEqual(await warnings('UPDATE', { netwrok: { config: {} } }, { netwrok: {} }), []);
    assert.deepEqual(await warnings('UPDATE', { netwrok: {} }, {}, 'status'), []);
  });
});

describe('annotations about components', () => {
  const force = (name: string) => `force.inventory.drawbridge.dev/${name}`;
  const abandon = (name: string) => `abandon.inventory.drawbridge.dev/${name}`;
  const entryWith = (annotations: object, fields: { status?: object; deletionTimestamp?: string } = {}) => {
    const { status = {}, ...metadata } = fields;
    const { metadata: names, spec } = object({});
    return { metadata: { ...names, ...metadata, annotations }, spec, status };
  };
  const warnings = (now: object, before: object) => warningsOf([network, cluster], now, before);
  const names = 'registered: cluster, network';

  it('are warned about once if no such component runs for the entry', async () => {
    const now = entryWith({ [force('netwrok')]: '1', [force('cluster')]: '1', [force('network')]: '1' });
    assert.deepEqual(await warnings(now, entryWith({})), [
      `annotation ${force('netwrok')} has no effect: no component netwrok is registered; ${names}; correct the name, or register the component`,
      `annotation ${force('cluster')} has no effect: component cluster does not run in mode byoc; it runs in managed; remove this setting`,
    ]);
    assert.deepEqual(await warnings(now, now), []);
  });

  it('are warned about if they abandon a component that neither the server nor the entry has', async () => {
    const now = { [abandon('netwrok')]: 'gone', [abandon('network')]: 'gone', [abandon('old')]: 'gone' };
    const status = { components: [{ name: 'old' }] };
    assert.deepEqual(await warnings(entryWith(now, { status }), entryWith({}, { status })), [
      `annotation ${abandon('netwrok')} has no effect: no component netwrok is registered; ${names}; correct the name, or register the component`,
    ]);
  });

  for (const reason of ['', ' ']) {
    it(`are warned about if the reason of an abandonment is ${JSON.stringify(reason)}`, async () => {
      assert.deepEqual(await warnings(entryWith({ [abandon('network')]: reason }), entryWith({})), [
        `annotation ${abandon('network')} abandons the component although it has no reason; set one, so that the entry and the audit journal show why`,
      ]);
    });
  }

  it('are warned about if a user ends an abandonment while the entry is being deleted', async () => {
    const before = { [abandon('network')]: 'gone' };
    const deletionTimestamp = '2026-11-21T09:00:00Z';
    assert.deepEqual(await warnings(entryWith({}, { deletionTimestamp }), entryWith(before, { deletionTimestamp })), [
      'component network stays abandoned: the entry is being deleted, and the server does not tear down what the component created',
    ]);
    assert.deepEqual(await warnings(entryWith({}), entryWith(before)), []);
  });

  it('cause at most 64 warnings of each kind, whatever a forged review has', async () => {
    const many = Array.from({ length: 1000 }, (_, n) => [force(`a${n}`), '1'] as const);
    assert.equal(countOf(await warnings(entryWith(Object.fromEntries(many)), entryWith({}))), 64);
  });
});

/** The number of warnings, with those that an answer only counts. */
function countOf(warnings: readonly string[] = []): number {
  const omitted = /^more warnings: (\d+)$/.exec(warnings.at(-1) ?? '');
  return omitted ? warnings.length - 1 + Number(omitted[1]) : warnings.length;
}

describe('registrations', () => {
  const spec = { endpoint: { url: 'http://127.0.0.1:1' } };
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
    ['an invalid one', review('CREATE', { object: { metadata: { name: 'network' }, spec: 7 } }), {}, 'InvalidObject'],
    [
      'an invalid selector',
      review('CREATE', { object: registration({ selector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } }) }),
      {},
      'InvalidObject',
    ],
    ['a bad caBundle', review('CREATE', { object: registration({ caBundle: 'no certificate' }) }), {}, 'InvalidObject'],
    ['the end of one', review('DELETE', { oldObject: registration() }), {}, undefined],
    [
      'the end of one that runs',
      review('DELETE', { oldObject: registration() }),
      { entries: ['fleet/orders'] },
      'HasRuns',
    ],
    [
      'the end of one that runs, among others that are deleted as a collection',
      review('DELETE', { name: '', oldObject: registration() }),
      { entries: ['fleet/orders'] },
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
