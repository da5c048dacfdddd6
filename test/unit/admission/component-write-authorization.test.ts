import assert from 'node:assert/strict';
import { accountName } from '../../../src/api/inventory/names.ts';
import type { ReconcileRun } from '../../../src/api/inventory/reconcile-run.ts';
import { allowed, paths, reviewOf, World } from './support.ts';

const uid = '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001';
const run = (spec: object = {}): ReconcileRun =>
  ({
    apiVersion: 'inventory.drawbridge.dev/v1alpha1',
    kind: 'ReconcileRun',
    metadata: { name: `${uid}.network`, namespace: 'fleet' },
    spec: {
      entry: { name: 'rt-1', uid },
      component: 'network',
      seq: 17,
      phase: 'Running',
      credentialID: 'JTI=now',
      ...spec,
    },
  }) as unknown as ReconcileRun;

const account = `system:serviceaccount:fleet:${accountName(uid, 'network')}`;
const caller = (ids: unknown = ['JTI=now'], username = account) => ({
  username,
  uid: 'u',
  groups: [],
  extra: { 'authentication.kubernetes.io/credential-id': ids },
});
const entry = (outputs: object, entryUid = uid) => ({
  metadata: { name: 'rt-1', namespace: 'fleet', uid: entryUid },
  spec: {},
  status: { outputs },
});
const write = (outputs: object, fields: object = {}) =>
  reviewOf('clusterinventories', 'UPDATE', {
    subResource: 'status',
    name: 'rt-1',
    namespace: 'fleet',
    userInfo: caller(),
    object: entry({ cluster: { e: 1 }, ...outputs }),
    oldObject: entry({ cluster: { e: 1 } }),
    ...fields,
  });

describe('authorization of component writes', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.run = run();
  });

  it('allows a component to write its own paths with the token of its run, and audits the run', async () => {
    const answer = await allowed(world.review(paths.fence, write({ network: { vnetName: 'v' } })));
    assert.deepEqual(world.asked, [`run fleet ${uid} network`]);
    const [line] = world.lines;
    assert.deepEqual(
      [line?.verdict, line?.component, line?.run, line?.who.user, line?.what.name],
      ['allowed', 'network', `${uid}.network.17`, account, 'rt-1'],
    );
    assert.deepEqual([answer.auditAnnotations, world.deniedWrites], [{ run: `${uid}.network.17` }, []]);
  });

  const refused: [string, object, Partial<Pick<World, 'run' | 'writes'>>, string][] = [
    ['a path of another', write({ cluster: { e: 2 } }), {}, 'ForeignPath'],
    ['its own path and that of another', write({ network: { v: 1 }, cluster: { e: 2 } }), {}, 'ForeignPath'],
    ['the token of another run', write({}, { userInfo: caller(['JTI=before']) }), {}, 'NoSuchRun'],
    ['a token without an id', write({}, { userInfo: caller([]) }), {}, 'NoSuchRun'],
    ['a token with two ids', write({}, { userInfo: caller(['JTI=x', 'JTI=now']) }), {}, 'NoSuchRun'],
    ['a finished run', write({}), { run: run({ phase: 'Idle' }) }, 'NoSuchRun'],
    ['no record', write({}), { run: undefined }, 'NoSuchRun'],
    ['the record of an earlier entry', write({}), { run: run({ entry: { name: 'rt-1', uid: 'x' } }) }, 'NoSuchRun'],
    ['another entry', write({}, { oldObject: entry({}, 'x') }), {}, 'NoSuchRun'],
    ['an entry of another namespace', write({}, { namespace: 'other' }), {}, 'NoSuchRun'],
    ['an account with a similar name', write({}, { userInfo: caller(['JTI=now'], `${account}.x`) }), {}, 'NoSuchRun'],
    ['a component that is not registered', write({}), { writes: undefined }, 'NoSuchRun'],
  ];
  for (const [what, review, changes, code] of refused) {
    it(`denies ${what}: ${code}`, async () => {
      Object.assign(world, changes);
      const answer = await world.review(paths.fence, review as Record<string, unknown>);
      assert.deepEqual([answer.allowed, answer.status?.code], [false, 403]);
      assert.match(answer.status?.message ?? '', new RegExp(`^${code}: `));
      assert.deepEqual([world.lines[0]?.verdict, world.lines[0]?.code], ['denied', code]);
      assert.deepEqual(world.deniedWrites, [code]);
    });
  }

  it('counts no dry runs, which prove that the webhook works', async () => {
    world.run = undefined;
    const answer = await world.review(paths.fence, write({}, { dryRun: true }));
    assert.match(answer.status?.message ?? '', /^NoSuchRun: /);
    assert.deepEqual(world.deniedWrites, []);
  });
});
