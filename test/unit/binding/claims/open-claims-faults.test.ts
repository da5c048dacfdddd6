import assert from 'node:assert/strict';
import { copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import { secrets } from '../../../../src/api/resources.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import { byReference, ClaimsStage, secretIn, secretsOf } from './claims-stage.ts';

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('when something goes wrong', () => {
    it('decide from live reads, not from a stale store', async () => {
      stage.serviceNamespace('team-a');
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

    it('overwrite no object that changed in between', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.provider.fault = ({ verb }) => {
        if (verb !== 'replace') return;
        stage.provider.fault = () => {};
        throw new ApiError(409, 'Conflict', 'the object has been modified');
      };
      stage.change('consumer', 'team-a/creds', { data: { password: 'bmV3' } });
      await stage.settle(1000);
      assert.deepEqual(stage.up()?.['data'], { password: 'bmV3' });
      assert.equal(await stage.metric('drawbridge_binding_conflicts_total{resource="secrets",side="provider"}'), 1);
    });

    it('retry at least every five seconds while permissions are missing, report it, and clear the problem afterwards', async () => {
      stage.serviceNamespace('team-a');
      let refused = 0;
      stage.provider.fault = ({ verb }) => {
        if (verb !== 'create') return;
        refused++;
        throw new ApiError(403, 'Forbidden', 'secrets is forbidden');
      };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      await stage.settle(500);
      assert.deepEqual(stage.claims.problems(), []);
      await stage.settle(60_000);
      assert.ok(refused >= 12 && refused <= 24, `${refused} attempts`);
      assert.deepEqual(stage.claims.problems(), [
        'secrets team-a/creds: the provider denied permission: secrets is forbidden',
      ]);
      stage.provider.fault = () => {};
      await stage.settle(5000);
      assert.ok(stage.up());
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('are all synced once the provider answers again', async () => {
      stage.serviceNamespace('team-a');
      await stage.open([secretsOf('kettle')]);
      stage.provider.fault = () => {
        throw new TransportError('connect ECONNREFUSED', undefined, true);
      };
      for (let i = 0; i < 20; i++) stage.consumer.put(secrets, secretIn('team-a', `creds-${i}`));
      for (let minute = 0; minute < 5; minute++) await stage.settle(60_000);
      const callsBefore = stage.provider.calls.length;
      assert.ok(callsBefore < 20 * 40, `${callsBefore} calls in five minutes`);
      assert.deepEqual(stage.claims.problems(), []);
      stage.provider.fault = () => {};
      stage.consumer.put(secrets, secretIn('team-a', 'another'));
      await stage.settle(100);
      assert.equal(stage.provider.list(secrets).length, 21);
    });

    it('hold back many deletes without an observed cause until the annotation allows them', async () => {
      const { uid } = stage.consumerCluster();
      stage.serviceNamespace('team-a');
      for (let i = 0; i < 25; i++) {
        const copy = secretIn('kb-acme-team-a', `lost-${i}`, { labels: { 'kube-bind.io/owner': 'consumer' } });
        const annotations = {
          'kube-bind.io/consumer-uid': `gone-${i}`,
          [copyOfAnnotation]: `${uid}/team-a/lost-${i}`,
        };
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

    it('report what the provider rejects as invalid', async () => {
      stage.serviceNamespace('team-a');
      stage.provider.fault = ({ verb }) => {
        if (verb === 'create') throw new ApiError(422, 'Invalid', 'data is too long');
      };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual(stage.claims.problems(), [
        'secrets team-a/creds: the provider rejected the request: data is too long',
      ]);
    });

    it('back off and report a problem if the namespace of the provider does not exist', async () => {
      stage.serviceNamespace('team-a');
      stage.provider.fault = ({ verb }) => {
        if (verb === 'create') throw new ApiError(404, 'NotFound', 'namespaces "kb-acme-team-a" not found');
      };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      await stage.settle(600_000);
      const creates = stage.provider.calls.filter(({ verb }) => verb === 'create').length;
      assert.ok(creates <= 40, `${creates} creates in ten minutes`);
      assert.match(stage.claims.problems().join(), /namespaces "kb-acme-team-a" not found/);
      stage.provider.fault = () => {};
      await stage.settle(30_000);
      assert.ok(stage.up());
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('back off from a client that keeps changing a copy', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.provider.fault = async ({ verb }) => {
        if (verb !== 'replace') return;
        void stage.clock
          .settle()
          .then(() =>
            stage.change('provider', 'kb-acme-team-a/creds', { data: { password: `bmV3${stage.clock.monotonic()}` } }),
          );
      };
      stage.change('provider', 'kb-acme-team-a/creds', { data: {} });
      for (let second = 0; second < 60; second++) await stage.settle(1000);
      const updates = stage.provider.writes.filter((write) => write.startsWith('replace')).length;
      assert.ok(updates >= 3 && updates <= 12, `${updates} updates`);
    });

    it('do not repeat a write that a webhook of the provider changes until the original changes', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      const { replace } = stage.provider.client;
      stage.provider.client.replace = (resource, object, options) =>
        replace(resource, { ...object, data: { password: 'bXV0YXRlZA==' } }, options);
      const updates = () => stage.provider.writes.filter((write) => write.startsWith('replace')).length;
      stage.change('consumer', 'team-a/creds', { data: { password: 'bmV3' } });
      for (let minute = 0; minute < 5; minute++) await stage.settle(60_000);
      assert.equal(updates(), 1);
      assert.match(
        stage.claims.problems().join(),
        /secrets team-a\/creds: the provider accepts .*stores something else; ask the provider to correct the webhook .* then change your object, for example with a label/,
      );
      const { metadata } = stage.down() ?? {};
      assert.ok(metadata);
      const labels = { ...metadata.labels, written: 'again' };
      stage.change('consumer', 'team-a/creds', { metadata: { ...metadata, labels } });
      await stage.settle(1000);
      assert.equal(updates(), 2);
    });

    it('are created again if the provider deletes a copy that its webhook changed', async () => {
      stage.serviceNamespace('team-a');
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
      stage.watched = {
        watch: (spec) => ({ store: new InformerStore(spec, stage.clock, silentLog), release: () => {} }),
      };
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      await stage.settle(5000);
      assert.deepEqual(stage.claims.problems(), []);
      await stage.settle(6000);
      assert.match(
        stage.claims.problems().join(),
        /secrets kb-acme-team-a: the konnector has not listed the secrets in this namespace of the provider yet; .*ask it to grant/,
      );
      assert.deepEqual(stage.provider.writes, []);
    });

    it('leave no watch open', async () => {
      stage.serviceNamespace('team-a');
      const before = [stage.consumer.watches, stage.provider.watches];
      await stage.open([secretsOf('kettle'), byReference]);
      await stage.close();
      // The stage itself has 4 stores of the consumer and 5 of the provider.
      assert.deepEqual([stage.consumer.watches - 4, stage.provider.watches - 5], before);
    });
  });
});
