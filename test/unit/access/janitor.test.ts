import assert from 'node:assert/strict';
import { planHashAnnotation, requestLabel } from '../../../src/api/access/names.ts';
import { podAccessRequests } from '../../../src/api/access/pod-access.ts';
import type { KubeObject, ObjectMeta } from '../../../src/api/object.ts';
import { pods, roleBindings, roles } from '../../../src/api/resources.ts';
import { LifecycleStage, requestName } from './lifecycle/lifecycle-stage.ts';

const ours = [roleBindings, roles, pods];

describe('the janitor', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    await stage.start();
    await stage.granted();
  });
  afterEach(() => stage.stop());

  const left = (): string[] =>
    ours.flatMap((resource) => stage.cluster.names(resource).map((name) => `${resource.kind} ${name}`));

  const orphaned = (): string[] =>
    stage.lines.flatMap(({ code, what }) => (code === 'Orphaned' ? [`${what.operation} ${what.kind}`] : []));

  const calls = (): string[] => stage.cluster.calls.splice(0).map(({ verb, plural }) => `${verb} ${plural}`);

  /** Deletes the request while no server runs. */
  const vanishUnseen = async (): Promise<void> => {
    await stage.stop();
    stage.cluster.drop(podAccessRequests, requestName);
    stage.cluster.calls.length = 0;
  };

  const changeAll = (change: (metadata: ObjectMeta) => ObjectMeta): void => {
    for (const resource of ours) {
      for (const object of stage.cluster.all(resource))
        stage.cluster.put(resource, { ...object, metadata: change(object.metadata) });
    }
  };

  const withoutOwner = ({ ownerReferences: _, ...metadata }: ObjectMeta): ObjectMeta => metadata;

  it('keeps objects of a live request, without a call', async () => {
    stage.cluster.calls.length = 0;
    await stage.clock.advance(300_000);
    assert.deepEqual(calls(), []);
    await stage.restart();
    await stage.clock.advance(10_000);
    assert.deepEqual(calls(), []);
    assert.equal(left().length, 3);
  });

  it('deletes objects of a vanished request at the start, the RoleBinding first', async () => {
    await vanishUnseen();
    await stage.start();
    assert.deepEqual(left(), []);
    assert.deepEqual(calls(), ['get podaccessrequests', 'delete rolebindings', 'delete roles', 'delete pods']);
    assert.deepEqual(orphaned(), ['REVOKE RoleBinding', 'REVOKE Role', 'REVOKE Pod']);
  });

  it('deletes them even if Orphan removed the owner reference', async () => {
    changeAll(withoutOwner);
    await vanishUnseen();
    await stage.start();
    assert.deepEqual(left(), []);
  });

  it('keeps objects of a live request even if Orphan removed the owner reference', async () => {
    changeAll(withoutOwner);
    await stage.restart();
    await stage.clock.advance(200_000);
    assert.equal(left().length, 3);
  });

  it('retries until everything is deleted, and reports each object once', async () => {
    await vanishUnseen();
    stage.cluster.fail('delete', 'roles', { times: 3 });
    await stage.start();
    await stage.clock.advance(60_000);
    assert.deepEqual(left(), []);
    assert.deepEqual(orphaned(), ['REVOKE RoleBinding', 'REVOKE Role', 'REVOKE Pod']);
  });

  it('keeps everything until the API server confirms that the request is gone', async () => {
    await vanishUnseen();
    stage.cluster.fail('get', 'podaccessrequests');
    await stage.start();
    await stage.clock.advance(30_000);
    assert.equal(left().length, 3);
  });

  const lookalike = (metadata: Partial<ObjectMeta>): KubeObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'lookalike', namespace: 'payments', ...metadata },
  });
  const owner = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind: 'PodAccessRequest', name: 'gone', controller: true };
  const labels = { [requestLabel]: 'gone-uid' };
  const annotations = { [planHashAnnotation]: 'x' };

  it('finds objects without an event within a minute', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod' };
    stage.cluster.put(pods, { ...pod, metadata: { name: 'late', namespace: 'payments' } });
    const metadata = { name: 'late', namespace: 'payments', labels, annotations };
    stage.cluster.put(pods, { ...pod, metadata: { ...metadata, ownerReferences: [{ ...owner, uid: 'gone-uid' }] } });
    await stage.clock.advance(10_000);
    assert.ok(left().includes('Pod payments/late'), 'there was no event');
    await stage.clock.advance(50_000);
    assert.ok(!left().includes('Pod payments/late'));
  });

  it('deletes a copy of a live request’s child under another name', async () => {
    const before = stage.cluster.names(roles);
    const { uid: _, ...metadata } = stage.cluster.all(roles)[0]?.metadata ?? assert.fail('no Role');
    stage.cluster.put(roles, lookalike({ ...metadata, name: 'copy' }));
    await stage.clock.advance(10);
    assert.deepEqual(stage.cluster.names(roles), before);
    assert.equal(left().length, 3);
  });

  const strangers: [string, Partial<ObjectMeta>][] = [
    ['only the label', { labels }],
    ['no plan', { labels, ownerReferences: [{ ...owner, uid: 'gone-uid' }] }],
    ['no label', { annotations, ownerReferences: [{ ...owner, uid: 'gone-uid' }] }],
    ['another owner than its label', { labels, annotations, ownerReferences: [{ ...owner, uid: 'other' }] }],
    ['another kind of owner', { labels, annotations, ownerReferences: [{ ...owner, kind: 'Job', uid: 'gone-uid' }] }],
    ['no owner and a foreign name', { labels, annotations }],
  ];
  for (const [title, metadata] of strangers) {
    it(`keeps an object with ${title}`, async () => {
      stage.cluster.put(roles, lookalike(metadata));
      await stage.clock.advance(120_000);
      assert.ok(left().includes('Role payments/lookalike'));
      assert.deepEqual(orphaned(), []);
    });
  }
});
