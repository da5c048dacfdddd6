import assert from 'node:assert/strict';
import { accountName } from '../../../../src/api/inventory/names.ts';
import { roleBindings, roles, secrets, serviceAccounts } from '../../../../src/api/resources.ts';
import { EntryAccounts, type Grantee } from '../../../../src/inventory/accounts/entry-accounts.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { MemoryAccess } from '../../../support/inventory/memory-access.ts';

const uid = '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001';
const user = (component: string, of = uid): string => `system:serviceaccount:fleet:${accountName(of, component)}`;
const network: Grantee = { name: 'network', kubeconfig: 'none' };
const eventing: Grantee = { name: 'eventing', kubeconfig: 'read' };
const kubeconfig: Grantee = { name: 'kubeconfig', kubeconfig: 'produce' };
const { signal } = new AbortController();

const accountsOf = ({ client, recorder, clock }: MemoryAccess) =>
  new EntryAccounts({ client, events: recorder, clock });

describe('the access of components to an entry', () => {
  let world: MemoryAccess;
  let accounts: EntryAccounts;
  let entry: Entry;
  beforeEach(() => {
    world = new MemoryAccess();
    accounts = accountsOf(world);
    entry = world.entry();
  });
  const inNamespace = { namespace: 'fleet' };
  const names = () =>
    [serviceAccounts, roles, roleBindings, secrets].flatMap((resource) =>
      world.cluster.list(resource).map(({ metadata }) => `${resource.plural} ${metadata.name.replaceAll(uid, 'UID')}`),
    );

  it('uses one account per component, and shared Roles and RoleBindings', async () => {
    for (const component of [network, eventing, kubeconfig]) await accounts.ensure(entry, component, signal);
    assert.deepEqual(names(), [
      'serviceaccounts inventory-UID.network',
      'serviceaccounts inventory-UID.eventing',
      'serviceaccounts inventory-UID.kubeconfig',
      'roles inventory-UID-entry',
      'roles inventory-UID-kubeconfig',
      'roles inventory-UID-kubeconfig-producer',
      'rolebindings inventory-UID-entry',
      'rolebindings inventory-UID-kubeconfig',
      'rolebindings inventory-UID-kubeconfig-producer',
      'secrets kc-UID',
    ]);
    for (const resource of [serviceAccounts, roles, roleBindings, secrets]) {
      for (const { metadata } of world.cluster.list(resource)) {
        assert.deepEqual(
          metadata.ownerReferences?.map((owner) => [owner.kind, owner.uid]),
          [['ClusterInventory', uid]],
        );
      }
    }
  });

  const rights: [Grantee, string, string, string, boolean][] = [
    [network, 'get', 'clusterinventories', 'rt-1', true],
    [network, 'get', 'clusterinventories/status', 'rt-1', true],
    [network, 'patch', 'clusterinventories/status', 'rt-1', true],
    [network, 'patch', 'clusterinventories', 'rt-1', false],
    [network, 'update', 'clusterinventories/status', 'rt-1', false],
    [network, 'get', 'clusterinventories', 'rt-2', false],
    [network, 'list', 'clusterinventories', '', false],
    [network, 'get', 'secrets', `kc-${uid}`, false],
    [eventing, 'get', 'secrets', `kc-${uid}`, true],
    [eventing, 'patch', 'secrets', `kc-${uid}`, false],
    [eventing, 'get', 'secrets', 'other', false],
    [eventing, 'list', 'secrets', '', false],
    [kubeconfig, 'get', 'secrets', `kc-${uid}`, true],
    [kubeconfig, 'patch', 'secrets', `kc-${uid}`, true],
    [kubeconfig, 'delete', 'secrets', `kc-${uid}`, false],
  ];
  for (const [component, verb, resource, name, allowed] of rights) {
    it(`${allowed ? 'allows' : 'denies'} ${component.name} to ${verb} ${resource} ${name.replace(uid, 'UID')}`, async () => {
      for (const one of [network, eventing, kubeconfig]) await accounts.ensure(entry, one, signal);
      assert.equal(world.may(user(component.name), verb, resource, name), allowed);
    });
  }

  it('is created once, and waits until it is in force', async () => {
    world.lag = 3;
    const ensuring = accounts.ensure(entry, network, signal);
    for (let step = 0; step < 5; step++) await world.clock.advance(15);
    await ensuring;
    assert.equal(world.questions.length, 4);
    const writes = world.cluster.writes.length;
    await accounts.ensure(entry, network, signal);
    assert.deepEqual([world.cluster.writes.length, world.questions.length], [writes, 4]);
  });

  it('times out if the API server keeps denying it', async () => {
    world.lag = Number.POSITIVE_INFINITY;
    const ensuring = assert.rejects(accounts.ensure(entry, network, signal), { code: 'GrantNotInForce' });
    for (let waited = 0; waited < 5_100; waited += 15) await world.clock.advance(15);
    await ensuring;
  });

  it('is prepared for all components at once, without later writes for each', async () => {
    await accounts.prepare(entry, [network, eventing] as Registration[], signal);
    const { writes } = world.cluster;
    await Promise.all([accounts.ensure(entry, network, signal), accounts.ensure(entry, eventing, signal)]);
    assert.deepEqual(world.cluster.writes, writes);
  });

  it('is checked once after a restart, and written only where something is missing', async () => {
    await accounts.prepare(entry, [network, kubeconfig] as Registration[], signal);
    const next = accountsOf(world);
    const writes = [...world.cluster.writes];
    await next.ensure(entry, network, signal);
    assert.deepEqual([world.cluster.writes, world.questions.length], [writes, 1]);
    world.cluster.drop(secrets, { ...inNamespace, name: `kc-${uid}` });
    await next.ensure(entry, kubeconfig, signal);
    assert.equal(world.cluster.list(secrets).length, 1, 'its producer needs the Secret');
  });

  it('is repaired after another client removed it', async () => {
    await accounts.ensure(entry, network, signal);
    world.cluster.drop(roleBindings, { ...inNamespace, name: `inventory-${uid}-entry` });
    await accounts.ensure(entry, network, signal);
    assert.equal(world.cluster.list(roleBindings).length, 0, 'it is not asked about each time');
    await world.clock.advance(10 * 60_000);
    await accounts.ensure(entry, network, signal);
    assert.equal(world.may(user('network'), 'patch', 'clusterinventories/status', 'rt-1'), true);
  });

  it('removes foreign subjects and rules from its RoleBinding and Role', async () => {
    await accounts.ensure(entry, network, signal);
    const name = { ...inNamespace, name: `inventory-${uid}-entry` };
    const stranger = { kind: 'ServiceAccount', name: 'default', namespace: 'fleet' };
    await world.client.mergePatch(roleBindings, name, { subjects: [stranger, { kind: 'User', name: 'eve' }] });
    await world.client.mergePatch(roles, name, { rules: [] });
    accounts.forget(uid);
    await accounts.ensure(entry, network, signal);
    const found = world.cluster.find(roleBindings, name);
    assert.deepEqual(found?.['subjects'], [
      { kind: 'ServiceAccount', name: accountName(uid, 'network'), namespace: 'fleet' },
    ]);
    assert.equal(world.may(user('network'), 'get', 'clusterinventories', 'rt-1'), true);
  });

  it('retries a write after a conflict, and not after a rejection', async () => {
    await accounts.ensure(entry, network, signal);
    const patches = () => world.cluster.calls.filter(({ verb }) => verb === 'patch').length;
    let answers = [new ApiError(409, 'Conflict', 'modified'), new ApiError(404, 'NotFound', 'gone')];
    world.cluster.fault = ({ verb }) => {
      const error = verb === 'patch' ? answers.shift() : undefined;
      if (error) throw error;
    };
    await accounts.ensure(entry, eventing, signal);
    assert.equal(world.may(user('eventing'), 'get', 'clusterinventories', 'rt-1'), true);
    assert.deepEqual([patches(), answers], [3, []]);

    answers = [new ApiError(403, 'Forbidden', 'not yours'), new ApiError(403, 'Forbidden', 'not yours')];
    await assert.rejects(accounts.ensure(entry, { name: 'dns', kubeconfig: 'none' }, signal), { code: 403 });
    assert.deepEqual([patches(), answers.length], [4, 1]);
  });

  it('fails if other clients keep changing an object', async () => {
    await accounts.ensure(entry, network, signal);
    world.cluster.fault = ({ verb }) => {
      if (verb === 'patch') throw new ApiError(409, 'Conflict', 'modified');
    };
    await assert.rejects(accounts.ensure(entry, { name: 'dns', kubeconfig: 'none' }, signal), { code: 409 });
    assert.equal(world.cluster.calls.filter(({ verb }) => verb === 'patch').length, 5);
  });

  it('does not adopt objects of other owners', async () => {
    const metadata = { ...inNamespace, name: `inventory-${uid}-entry` };
    world.cluster.put(roles, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules: [] });
    await assert.rejects(accounts.ensure(entry, network, signal), { code: 'NameTaken' });
  });

  it('rejects objects with the right owner reference that cannot be corrected', async () => {
    await accounts.ensure(entry, kubeconfig, signal);
    const name = { ...inNamespace, name: `inventory-${uid}-entry` };
    const binding = world.cluster.find(roleBindings, name);
    const secret = world.cluster.find(secrets, { ...inNamespace, name: `kc-${uid}` });
    assert.ok(binding && secret);
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'of-another-owner' };
    world.cluster.put(roleBindings, { ...binding, roleRef });
    await assert.rejects(accountsOf(world).ensure(entry, network, signal), {
      code: 'NameTaken',
      message:
        /exists and has another roleRef, which cannot change; delete it: kubectl delete rolebinding inventory-\S+-entry -n \S+$/,
    });
    world.cluster.put(roleBindings, binding);
    world.cluster.put(secrets, { ...secret, immutable: true });
    await assert.rejects(accountsOf(world).ensure(entry, kubeconfig, signal), {
      code: 'NameTaken',
      message: /kc-.* exists and is immutable; delete it: kubectl delete secret kc-\S+ -n \S+$/,
    });
  });

  for (const [was, is] of [
    ['read', 'none'],
    ['produce', 'read'],
    ['produce', 'none'],
    ['read', 'produce'],
  ] as const) {
    const mayDo = (name: string) =>
      (['get', 'patch'] as const).filter((verb) => world.may(user(name), verb, 'secrets', `kc-${uid}`));
    const expected = { none: [], read: ['get'], produce: ['get', 'patch'] };

    for (const when of ['at once', 'after a restart'] as const) {
      it(`follows a registration that changes kubeconfig from ${was} to ${is}, ${when}`, async () => {
        await accounts.ensure(entry, { name: 'dns', kubeconfig: was }, signal);
        await accounts.ensure(entry, { name: 'other', kubeconfig: was }, signal);
        const next = when === 'at once' ? accounts : accountsOf(world);
        await next.ensure(entry, { name: 'dns', kubeconfig: is }, signal);
        assert.deepEqual([mayDo('dns'), mayDo('other')], [expected[is], expected[was]]);
        const subjects = world.cluster.list(roleBindings).map((binding) => binding['subjects']);
        assert.equal(JSON.stringify(subjects).split('.dns"').length - 1, is === 'none' ? 1 : 2);
        await next.ensure(entry, { name: 'dns', kubeconfig: was }, signal);
        assert.deepEqual(mayDo('dns'), expected[was]);
      });
    }
  }

  it('costs one access review per grant after a restart, and one read of the kubeconfig bindings per entry', async () => {
    await accounts.prepare(entry, [network, eventing, kubeconfig] as Registration[], signal);
    const next = accountsOf(world);
    world.cluster.calls.length = 0;
    for (const component of [network, eventing]) await next.ensure(entry, component, signal);
    assert.deepEqual(
      world.cluster.calls.map(({ verb, plural }) => `${verb} ${plural}`),
      ['get rolebindings', 'get rolebindings'],
    );
    assert.equal(world.questions.length, 3);
  });

  it('is deleted with the entry, RoleBindings first, and leaves other entries unchanged', async () => {
    const other = world.entry({ ref: { namespace: 'fleet', name: 'rt-2', uid: 'other' } });
    for (const component of [network, kubeconfig]) await accounts.ensure(entry, component, signal);
    await accounts.ensure(other, network, signal);
    const before = world.cluster.writes.length;
    await accounts.withdraw(entry.ref, signal);
    const deleted = world.cluster.writes.slice(before).map((write) => write.split(' ')[1]);
    assert.deepEqual([...new Set(deleted)], ['rolebindings', 'roles', 'serviceaccounts', 'secrets']);
    assert.deepEqual(names(), [
      'serviceaccounts inventory-other.network',
      'roles inventory-other-entry',
      'rolebindings inventory-other-entry',
    ]);
    await accounts.withdraw(entry.ref, signal);
  });

  it('is withdrawn from a single component', async () => {
    for (const component of [network, eventing]) await accounts.ensure(entry, component, signal);
    await accounts.deleteAccount(entry.ref, 'eventing', signal);
    assert.equal(world.may(user('eventing'), 'get', 'secrets', `kc-${uid}`), false);
    assert.equal(world.may(user('eventing'), 'get', 'clusterinventories', 'rt-1'), false);
    assert.equal(world.may(user('network'), 'get', 'clusterinventories', 'rt-1'), true);
    assert.equal(world.cluster.list(serviceAccounts).length, 1);
    await accounts.ensure(entry, eventing, signal);
    assert.equal(world.may(user('eventing'), 'get', 'secrets', `kc-${uid}`), true);
  });
});

describe('a supplied kubeconfig', () => {
  const byoc: Grantee = { name: 'byoc', kubeconfig: 'produce' };
  const alice = { username: 'alice', uid: 'u-1', groups: ['devs'], extra: { tenant: ['a'] } };
  let world: MemoryAccess;
  let accounts: EntryAccounts;
  beforeEach(() => {
    world = new MemoryAccess();
    accounts = accountsOf(world);
  });
  const named = (name: string, kubeconfigSetBy: Entry['kubeconfigSetBy'] = alice) =>
    world.entry({ mode: 'byoc', kubeconfigSecretRef: { name, key: 'config' }, kubeconfigSetBy });
  const mayRead = (component: string, secret: string) => world.may(user(component), 'get', 'secrets', secret);

  it('is readable only by its component, if the user who set the reference may read it', async () => {
    world.readers.add('alice mine');
    await accounts.ensure(named('mine'), eventing, signal);
    await accounts.ensure(named('mine'), byoc, signal);
    assert.deepEqual([mayRead('byoc', 'mine'), mayRead('eventing', 'mine')], [true, false]);
    const asked = world.questions.find((question) => question.user === 'alice');
    assert.deepEqual(asked, {
      user: 'alice',
      uid: 'u-1',
      groups: ['devs'],
      extra: { tenant: ['a'] },
      namespace: 'fleet',
      verb: 'get',
      group: '',
      resource: 'secrets',
      name: 'mine',
    });
    assert.deepEqual(world.events, []);
  });

  it('is not readable if the user who set the reference may not read it or is unknown', async () => {
    await accounts.ensure(named('theirs'), byoc, signal);
    assert.equal(mayRead('byoc', 'theirs'), false);
    await accounts.ensure(named('theirs'), byoc, signal);
    assert.deepEqual(
      world.events.map(({ reason, note }) => [
        reason,
        /^user alice set kubeconfigSecretRef theirs but may not read that Secret; ask a user who may read it to remove /.test(
          note,
        ),
      ]),
      [['SecretNotReadable', true]],
    );
    const unstamped = world.entry({ mode: 'byoc', kubeconfigSecretRef: { name: 'theirs', key: 'config' } }, 'x');
    world.readers.add('alice theirs');
    await accounts.ensure(unstamped, byoc, signal);
    assert.match(world.events[1]?.note ?? '', /kubeconfigSecretRef theirs has no verified user/);
  });

  it('is no longer readable after the user lost the permission or another Secret is named', async () => {
    world.readers.add('alice mine').add('alice other');
    await accounts.ensure(named('mine'), byoc, signal);
    await accounts.ensure(named('other'), byoc, signal);
    assert.deepEqual([mayRead('byoc', 'mine'), mayRead('byoc', 'other')], [false, true]);
    world.readers.clear();
    await accounts.ensure(named('other'), byoc, signal);
    assert.equal(mayRead('byoc', 'other'), false);
  });

  it('is readable again after another client removed the grant', async () => {
    world.readers.add('alice mine');
    await accounts.ensure(named('mine'), byoc, signal);
    world.cluster.drop(roleBindings, { namespace: 'fleet', name: `inventory-${uid}-supplied` });
    await accounts.ensure(named('mine'), byoc, signal);
    assert.equal(mayRead('byoc', 'mine'), false, 'it is not asked about each time');
    await world.clock.advance(10 * 60_000);
    await accounts.ensure(named('mine'), byoc, signal);
    assert.equal(mayRead('byoc', 'mine'), true);
    await accounts.deleteAccount(named('mine').ref, 'byoc', signal);
    assert.equal(mayRead('byoc', 'mine'), false);
    await accounts.ensure(named('mine'), byoc, signal);
    assert.equal(mayRead('byoc', 'mine'), true);
  });

  it('is ignored in managed entries', async () => {
    world.readers.add('alice mine');
    await accounts.ensure({ ...named('mine'), mode: 'managed' }, byoc, signal);
    assert.equal(mayRead('byoc', 'mine'), false);
  });
});
