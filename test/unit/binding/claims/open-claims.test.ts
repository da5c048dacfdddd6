import assert from 'node:assert/strict';
import { copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import { configMaps, secrets, serviceAccounts } from '../../../../src/api/resources.ts';
import { kettles } from '../../../support/binding/memory-stage.ts';
import { byReference, ClaimsStage, claimOn, kettle, secretIn, secretsOf } from './claims-stage.ts';

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('of objects of the consumer', () => {
    it('are copied with label, uid, and content, and not written again', async () => {
      const { uid } = stage.consumer.put(secrets, secretIn('team-a', 'creds')).metadata;
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual(stage.up()?.['data'], { password: 'c2VjcmV0' });
      assert.deepEqual(stage.up()?.metadata.labels, { app: 'kettle', 'kube-bind.io/owner': 'consumer' });
      assert.deepEqual(stage.up()?.metadata.annotations, {
        'kube-bind.io/consumer-namespace': 'team-a',
        'kube-bind.io/consumer-uid': uid,
      });
      assert.equal(stage.down()?.metadata.labels?.['kube-bind.io/owner'], 'consumer');
      assert.deepEqual(stage.consumer.writes, ['replace secrets team-a/creds']);
      assert.deepEqual(stage.provider.writes, ['create secrets kb-acme-team-a/creds']);
      assert.equal(stage.provider.calls.find(({ verb }) => verb === 'create')?.fieldManager, 'kube-bind.io');

      stage.claims.resync();
      await stage.settle(60_000);
      assert.equal(stage.consumer.writes.length + stage.provider.writes.length, 2);
      assert.equal(await stage.metric('drawbridge_binding_sync_up_seconds_count{resource="secrets"}'), 1);
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('follow changes, removed fields, and deletion', async () => {
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { data: { a: 'MQ==', b: 'Mg==' } }));
      await stage.open([secretsOf('kettle')]);
      stage.change('consumer', 'team-a/creds', { data: { a: 'Mw==' } });
      await stage.settle();
      assert.deepEqual(stage.up()?.['data'], { a: 'Mw==' });
      stage.consumer.drop(secrets, { namespace: 'team-a', name: 'creds' });
      await stage.settle();
      assert.equal(stage.up(), undefined);
    });

    it('are not deleted after a change of all labels', async () => {
      const secret = stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.change('consumer', 'team-a/creds', { metadata: { ...secret.metadata, labels: {} } });
      await stage.settle();
      assert.ok(stage.up());
      assert.ok(!stage.provider.writes.some((write) => write.startsWith('delete')));
    });

    it('request a service namespace once, and are copied when it exists', async () => {
      stage.namespace('team-b');
      stage.consumer.put(secrets, secretIn('team-b', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual(stage.requested, ['create apiservicenamespaces kb-acme/team-b']);
      const copy = () => stage.up('creds', secrets, 'kb-acme-team-b');
      assert.equal(copy(), undefined);
      stage.serviceNamespace('team-b');
      await stage.settle();
      assert.ok(copy());
      assert.equal(stage.requested.length, 1);
    });

    it('are copied when an object begins to refer to them', async () => {
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { labels: {} }));
      stage.consumer.put(secrets, secretIn('team-a', 'other', { labels: {} }));
      await stage.open([byReference]);
      assert.equal(stage.up(), undefined);
      stage.consumer.put(kettles, kettle([{ name: 'creds' }]));
      await stage.settle();
      assert.ok(stage.up());
      assert.equal(stage.up('other'), undefined);
    });

    it('are adopted from another konnector, and stay if their original is gone', async () => {
      const { uid } = stage.consumerCluster();
      const { metadata } = stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      const copied = (name: string, consumerUid: string): void => {
        const copy = secretIn('kb-acme-team-a', name, { labels: { app: 'kettle', 'kube-bind.io/owner': 'consumer' } });
        const annotations = { 'kube-bind.io/consumer-namespace': 'team-a', 'kube-bind.io/consumer-uid': consumerUid };
        stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      };
      copied('creds', metadata.uid);
      copied('lost', 'gone');
      await stage.open([secretsOf('kettle')]);
      await stage.settle(120_000);
      assert.equal(stage.up()?.metadata.annotations?.[copyOfAnnotation], `${uid}/team-a/creds`);
      assert.ok(stage.up('lost'));
    });

    for (const resource of [configMaps, serviceAccounts]) {
      it(`work for ${resource.plural}`, async () => {
        const metadata = { namespace: 'team-a', name: 'one' };
        stage.consumer.put(resource, { apiVersion: 'v1', kind: resource.kind, metadata });
        await stage.open([claimOn(resource.plural, { namedResources: [{ name: 'one' }] })]);
        assert.ok(stage.up('one', resource));
      });
    }
  });

  it('log why an object is copied', async () => {
    stage.consumer.put(kettles, kettle([]));
    stage.consumer.put(secrets, secretIn('team-a', 'creds'));
    stage.provider.put(secrets, secretIn('kb-acme-team-a', 'theirs'));
    await stage.open([secretsOf('kettle')]);
    const why = 'its labels match app=kettle';
    const made = stage.logged.filter(({ action }) => action === 'create');
    const said = made.map(({ key, side, why }) => `${key} to ${side}: ${why}`);
    assert.deepEqual(said.sort(), [`team-a/creds to provider: ${why}`, `team-a/theirs to consumer: ${why}`]);
  });

  it('count synced objects', async () => {
    stage.consumer.put(secrets, secretIn('team-a', 'creds'));
    stage.consumer.put(secrets, secretIn('team-a', 'other', { labels: {} }));
    await stage.open([claimOn('secrets', { namedResources: [{ name: 'creds' }] })]);
    const series = ['consumer', 'provider'].map(
      (side) => `drawbridge_binding_objects{binding="kettles",resource="secrets",side="${side}"}`,
    );
    for (const one of series) assert.equal(await stage.metric(one), 1);
    await stage.close();
    for (const one of series) assert.equal(await stage.metric(one), undefined);
  });

  it('that are not valid are reported, and the others stay in effect', async () => {
    stage.consumer.put(secrets, secretIn('team-a', 'creds'));
    const references = [{ group: 'kitchen.example', resource: 'kettles', jsonPath: { name: 'spec.refs[*].name' } }];
    await stage.open([
      claimOn('configmaps', { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } }),
      claimOn('secrets', { ...secretsOf('kettle').selector, references }),
    ]);
    assert.ok(stage.up());
    const [labels, reference, ...more] = stage.claims.problems();
    assert.match(labels ?? '', /configmaps selects nothing: .*Like/);
    assert.match(reference ?? '', /references of kettles.kitchen.example: the path "spec.refs\[\*\].name"/);
    assert.deepEqual(more, []);
    assert.equal(stage.claims.controllers.length, 1);
  });
});
