import assert from 'node:assert/strict';
import { copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { unlisted } from '../../../support/binding/stores.ts';
import { byReference, ClaimsStage, secretIn, secretsOf } from './claims-stage.ts';

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('when something goes wrong', () => {
    it('decide from live reads, not from a stale store', async () => {
      await stage.open([secretsOf('kettle')]);
      stage.consumer.fault = ({ verb, name }) => {
        if (verb !== 'get' || name !== 'team-a/creds') return;
        stage.consumer.fault = () => {};
        stage.consumer.put(secrets, secretIn('team-a', 'creds', { labels: {} }));
      };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.settle();
      assert.deepEqual([...stage.consumer.writes, ...stage.provider.writes], []);
    });

    it('hold back many deletes without an observed cause until the annotation allows them', async () => {
      const { uid } = stage.consumerCluster();
      for (let i = 0; i < 25; i++) {
        const copy = secretIn('kb-acme-team-a', `lost-${i}`, { labels: { 'kube-bind.io/owner': 'consumer' } });
        const copyOf = `${uid}/team-a/lost-${i}`;
        const annotations = { 'kube-bind.io/consumer-uid': `gone-${i}`, [copyOfAnnotation]: copyOf };
        stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      }
      await stage.open([secretsOf('kettle')]);
      await stage.settle(60_000);
      assert.equal(stage.provider.list(secrets).length, 25);
      assert.match(stage.claims.problems().join(), /secrets: 25 copies have no original, .*allow-deletes/);
      assert.deepEqual(stage.told, [stage.claims.problems()]);
      stage.claims.allowDeletes();
      await stage.settle(1000);
      assert.equal(stage.provider.list(secrets).length, 0);
      assert.deepEqual(stage.claims.problems(), []);
      assert.deepEqual(stage.told.slice(1), [[]]);
    });

    it('are created again if the provider deletes a copy that its webhook changed', async () => {
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      const { replace } = stage.provider.client;
      stage.provider.client.replace = (resource, object, options) =>
        replace(resource, { ...object, data: { password: 'bXV0YXRlZA==' } }, options);
      stage.change('consumer', 'team-a/creds', { data: { password: 'bmV3' } });
      await stage.settle(60_000);
      stage.provider.drop(secrets, { namespace: 'kb-acme-team-a', name: 'creds' });
      await stage.settle(1000);
      assert.deepEqual(stage.up()?.['data'], { password: 'bmV3' });
      await stage.settle(60_000);
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('report a namespace of the provider that cannot be watched', async () => {
      stage.watched = { watch: (spec) => unlisted(spec, stage.clock) };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      await stage.settle(5000);
      assert.deepEqual(stage.claims.problems(), []);
      await stage.settle(6000);
      assert.match(stage.claims.problems().join(), /has not listed the secrets in this namespace of the provider yet/);
      assert.deepEqual(stage.provider.writes, []);
    });

    it('leave no watch open', async () => {
      const before = [stage.consumer.watches, stage.provider.watches];
      await stage.open([secretsOf('kettle'), byReference]);
      await stage.close();
      // The stage itself has 4 stores of the consumer and 5 of the provider.
      assert.deepEqual([stage.consumer.watches - 4, stage.provider.watches - 5], before);
    });
  });
});
