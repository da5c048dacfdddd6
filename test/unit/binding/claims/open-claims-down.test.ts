import assert from 'node:assert/strict';
import { customResourceDefinitions, namespaces, secrets } from '../../../../src/api/resources.ts';
import { kettles } from '../../../support/binding/memory-stage.ts';
import { byReference, ClaimsStage, claimOn, kettle, secretIn, secretsOf } from './claims-stage.ts';

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('of objects of the provider', () => {
    it('are copied only to namespaces with bound objects', async () => {
      stage.namespace('team-b');
      stage.serviceNamespace('team-b');
      for (const name of ['team-a', 'team-b']) {
        stage.provider.put(secrets, secretIn(`kb-acme-${name}`, 'creds'));
      }
      stage.consumer.put(kettles, kettle([]));
      await stage.open([secretsOf('kettle')]);
      assert.ok(stage.down());
      assert.equal(stage.down('creds', secrets, 'team-b'), undefined);
      stage.consumer.put(kettles, kettle([], 'team-b'));
      await stage.settle();
      assert.ok(stage.down('creds', secrets, 'team-b'));
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('are copied to a namespace whose bound objects were unknown while their CRD was not established', async () => {
      stage.consumer.put(kettles, kettle([]));
      await stage.open([secretsOf('kettle')]);
      const name = { name: 'kettles.kitchen.example' };
      const established = stage.consumer.find(customResourceDefinitions, name);
      assert.ok(established);
      const status = { conditions: [{ type: 'Established', status: 'False' }] };
      stage.consumer.put(customResourceDefinitions, { ...established, status });
      await stage.settle();
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds'));
      await stage.settle();
      assert.equal(stage.down(), undefined);
      stage.consumer.put(customResourceDefinitions, established);
      await stage.settle();
      assert.ok(stage.down());
    });

    it('are not copied to namespaces that only have objects of a definition that the binding does not own', async () => {
      stage.consumer.put(kettles, kettle([]));
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds'));
      stage.define({ ownerReferences: [] });
      await stage.open([secretsOf('kettle'), byReference]);
      assert.equal(stage.down(), undefined);
      assert.match(stage.claims.problems().join(), /references of kettles.kitchen.example: .*the binding does not own/);
    });

    it('are not copied because of references from objects that are not bound', async () => {
      const pots = { ...kettles, plural: 'pots', kind: 'Pot' };
      stage.consumer.put(pots, { ...kettle([{ name: 'creds' }, { name: 'mine' }]), kind: 'Pot' });
      stage.consumer.put(secrets, secretIn('team-a', 'mine', { labels: {} }));
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds'));
      const [reference] = byReference.selector.references ?? [];
      assert.ok(reference);
      const references = [{ ...reference, resource: 'pots', versions: ['v1'] }];
      await stage.open([claimOn('secrets', { references })], { isolation: 'None' });
      assert.ok(stage.up('mine'));
      assert.equal(stage.down(), undefined);
    });

    it('are copied to where bound objects refer to them, and to namespaces for providers', async () => {
      for (const name of ['team-b', 'team-c']) {
        stage.namespace(name);
        stage.serviceNamespace(name);
        for (const secret of ['creds', 'other'])
          stage.provider.put(secrets, secretIn(`kb-acme-${name}`, secret, { labels: {} }));
      }
      stage.consumer.put(kettles, kettle([{ name: 'creds', namespace: 'team-b' }]));
      await stage.open([byReference, claimOn('secrets', { labelSelector: {} })]);
      const down = () => stage.consumer.list(secrets).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
      assert.deepEqual(down(), ['team-b/creds']);
      const metadata = { name: 'team-c', labels: { 'kube-bind.io/owner': 'provider' } };
      stage.consumer.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
      await stage.settle();
      assert.deepEqual(down(), ['team-b/creds', 'team-c/creds', 'team-c/other']);
    });

    it('are copied, updated, and deleted with their originals', async () => {
      stage.consumer.put(kettles, kettle([]));
      const { uid } = stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds')).metadata;
      await stage.open([secretsOf('kettle')]);
      assert.equal(stage.up()?.metadata.labels?.['kube-bind.io/owner'], 'provider');
      assert.equal(stage.down()?.metadata.labels?.['kube-bind.io/owner'], 'provider');
      assert.deepEqual(stage.down()?.metadata.annotations, {
        'kube-bind.io/provider-namespace': 'kb-acme-team-a',
        'kube-bind.io/provider-uid': uid,
        'binding.drawbridge.dev/provider': 'uid-of-kb-acme',
      });
      stage.change('provider', 'kb-acme-team-a/creds', { data: { password: 'bmV3' } });
      await stage.settle();
      assert.deepEqual(stage.down()?.['data'], { password: 'bmV3' });
      stage.provider.drop(secrets, { namespace: 'kb-acme-team-a', name: 'creds' });
      await stage.settle();
      assert.equal(stage.down(), undefined);
      assert.equal(await stage.metric('drawbridge_binding_sync_down_seconds_count{resource="secrets"}'), 3);
    });

    it('are copied once the consumer namespace exists', async () => {
      stage.serviceNamespace('team-b');
      stage.consumer.put(kettles, kettle([], 'team-b'));
      stage.provider.put(secrets, secretIn('kb-acme-team-b', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.equal(stage.down('creds', secrets, 'team-b'), undefined);
      stage.namespace('team-b');
      await stage.settle();
      assert.ok(stage.down('creds', secrets, 'team-b'));
    });

    it('never overwrite an object without a label, and report it once', async () => {
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { labels: {} }));
      const labels = { 'kube-bind.io/owner': 'provider' };
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds', { labels, data: { password: 'ZXZpbA==' } }));
      await stage.open([claimOn('secrets', { namedResources: [{ name: 'creds' }] })]);
      stage.claims.resync();
      await stage.settle();
      assert.deepEqual(stage.down()?.['data'], { password: 'c2VjcmV0' });
      assert.match(stage.claims.problems().join(), /has its own object of this name, which would overwrite it/);
      assert.deepEqual([...stage.consumer.writes, ...stage.provider.writes], []);
      assert.equal(stage.events.length, 1);
      assert.equal(stage.events[0]?.reason, 'NotSynced');
    });
  });
});
