import assert from 'node:assert/strict';
import { apiServiceBindings, clusterBindings, copyOfAnnotation } from '../../../../src/api/binding/names.ts';
import {
  configMaps,
  customResourceDefinitions,
  namespaces,
  secrets,
  serviceAccounts,
} from '../../../../src/api/resources.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { InformerStore } from '../../../../src/kube/informer-store.ts';
import { silentLog } from '../../../../src/kube/log.ts';
import { bindingManifest, clusterBindingManifest } from '../../../support/binding/objects.ts';
import { ClaimsStage, claimOn, kettles, secretIn, secretsOf } from './claims-stage.ts';

const byReference = claimOn('secrets', {
  references: [
    {
      group: 'kitchen.example',
      resource: 'kettles',
      jsonPath: { name: 'spec.refs.#.name', namespace: 'spec.refs.#.namespace' },
    },
  ],
});
const kettle = (refs: readonly unknown[], namespace = 'team-a') => ({
  apiVersion: 'kitchen.example/v1',
  kind: 'Kettle',
  metadata: { namespace, name: 'k' },
  spec: { refs },
});

describe('claims', () => {
  let stage: ClaimsStage;
  beforeEach(() => {
    stage = new ClaimsStage();
  });
  afterEach(() => stage.close());

  describe('of objects of the consumer', () => {
    it('go up with their label, their uid and their content, and are touched no more', async () => {
      stage.serviceNamespace('team-a');
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

    it('follow changes, removals of fields and deletion', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { data: { a: 'MQ==', b: 'Mg==' } }));
      await stage.open([secretsOf('kettle')]);
      stage.change('consumer', 'team-a/creds', { data: { a: 'Mw==' } });
      await stage.settle();
      assert.deepEqual(stage.up()?.['data'], { a: 'Mw==' });
      stage.consumer.drop(secrets, { namespace: 'team-a', name: 'creds' });
      await stage.settle();
      assert.equal(stage.up(), undefined);
    });

    it('are repaired in the provider, and created anew when somebody deletes them there', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.change('provider', 'kb-acme-team-a/creds', { data: { password: 'b3RoZXI=' } });
      await stage.settle(1000);
      assert.deepEqual(stage.up()?.['data'], { password: 'c2VjcmV0' });
      stage.provider.drop(secrets, { namespace: 'kb-acme-team-a', name: 'creds' });
      await stage.settle(2000);
      assert.ok(stage.up());
    });

    it('stay as they are once the label is gone, and still go with their original', async () => {
      stage.serviceNamespace('team-a');
      const secret = stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.change('consumer', 'team-a/creds', {
        metadata: { ...secret.metadata, labels: { 'kube-bind.io/owner': 'consumer' } },
        data: { password: 'bmV3' },
      });
      await stage.settle();
      assert.deepEqual(stage.up()?.['data'], { password: 'c2VjcmV0' });
      stage.consumer.drop(secrets, { namespace: 'team-a', name: 'creds' });
      await stage.settle();
      assert.equal(stage.up(), undefined);
    });

    it('are not deleted because they were relabelled altogether', async () => {
      stage.serviceNamespace('team-a');
      const secret = stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      stage.change('consumer', 'team-a/creds', { metadata: { ...secret.metadata, labels: {} } });
      await stage.settle();
      assert.ok(stage.up());
      assert.ok(!stage.provider.writes.some((write) => write.startsWith('delete')));
    });

    it('ask once for a service namespace and go up when it is there', async () => {
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual(stage.requested, ['create apiservicenamespaces kb-acme/team-a']);
      assert.equal(stage.up(), undefined);
      stage.serviceNamespace('team-a');
      await stage.settle();
      assert.ok(stage.up());
      assert.equal(stage.requested.length, 1);
    });

    it('go up when something begins to refer to them', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { labels: {} }));
      stage.consumer.put(secrets, secretIn('team-a', 'other', { labels: {} }));
      await stage.open([byReference]);
      assert.equal(stage.up(), undefined);
      stage.consumer.put(kettles, kettle([{ name: 'creds' }]));
      await stage.settle();
      assert.ok(stage.up());
      assert.equal(stage.up('other'), undefined);
    });

    it('are replaced when they cannot be changed', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { immutable: true }));
      await stage.open([secretsOf('kettle')]);
      const before = stage.up()?.metadata.uid;
      stage.consumer.drop(secrets, { namespace: 'team-a', name: 'creds' });
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { immutable: true, data: { password: 'bmV3' } }));
      await stage.settle();
      assert.deepEqual(stage.up()?.['data'], { password: 'bmV3' });
      assert.notEqual(stage.up()?.metadata.uid, before);
    });

    it('are taken over from another konnector, and go when they went while nobody looked', async () => {
      stage.serviceNamespace('team-a');
      const copy = secretIn('kb-acme-team-a', 'lost', { labels: { app: 'kettle', 'kube-bind.io/owner': 'consumer' } });
      const annotations = { 'kube-bind.io/consumer-namespace': 'team-a', 'kube-bind.io/consumer-uid': 'gone' };
      stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, name: 'silent' } });
      await stage.open([secretsOf('kettle')]);
      await stage.settle(1000);
      assert.equal(stage.up('lost'), undefined);
      assert.ok(stage.up('silent'));
    });

    it('carry the proof of their name and cluster, which clones and those of another cluster lack', async () => {
      const { uid } = stage.consumer.put(namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'kube-system' },
      }).metadata;
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      const copy = stage.up();
      assert.equal(copy?.metadata.annotations?.[copyOfAnnotation], `${uid}/team-a/creds`);
      const { labels = {}, annotations = {} } = copy?.metadata ?? {};
      const like = (name: string, said: Record<string, string>) => {
        const { metadata, ...secret } = secretIn('kb-acme-team-a', name, { labels });
        stage.provider.put(secrets, { ...secret, metadata: { ...metadata, annotations: { ...annotations, ...said } } });
      };
      like('clone', {});
      const [proved, theirs] = [`${uid}/team-a/proved`, 'uid-of-another/team-a/theirs'];
      for (const [name, copyOf] of Object.entries({ proved, theirs })) {
        like(name, { 'kube-bind.io/consumer-uid': 'gone', [copyOfAnnotation]: copyOf });
      }
      await stage.settle(3000);
      assert.deepEqual([stage.up('proved'), !!stage.up('clone'), !!stage.up('theirs')], [undefined, true, true]);
    });

    it('stay without that proof while another konnector reports to the provider', async () => {
      stage.serviceNamespace('team-a');
      const conditions = (status: string) => ({
        conditions: [{ type: 'SoleKonnector', status, lastTransitionTime: '2026-11-21T09:00:00Z' }],
      });
      stage.provider.put(clusterBindings, clusterBindingManifest({ status: conditions('False') }));
      const labels = { 'kube-bind.io/owner': 'consumer' };
      const copy = secretIn('kb-acme-team-a', 'lost', { labels });
      const annotations = { 'kube-bind.io/consumer-uid': 'gone' };
      stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      await stage.open([secretsOf('kettle')]);
      await stage.settle(120_000);
      assert.ok(stage.up('lost'));
      stage.provider.put(clusterBindings, clusterBindingManifest({ status: conditions('True') }));
      await stage.settle(120_000);
      assert.equal(stage.up('lost'), undefined);
    });

    it('leave out what belongs to the cluster or opens another provider', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(apiServiceBindings, {
        ...bindingManifest(),
        spec: { kubeconfigSecretRef: { namespace: 'team-a', name: 'acme', key: 'kubeconfig' } },
      });
      stage.consumer.put(secrets, secretIn('team-a', 'acme'));
      stage.consumer.put(secrets, secretIn('team-a', 'token', { type: 'kubernetes.io/service-account-token' }));
      stage.consumer.put(secrets, secretIn('team-a', 'plain'));
      await stage.open([claimOn('secrets', { labelSelector: {} })]);
      assert.deepEqual(stage.provider.writes, ['create secrets kb-acme-team-a/plain']);
    });

    for (const [resource, plural] of [
      [configMaps, 'configmaps'],
      [serviceAccounts, 'serviceaccounts'],
    ] as const) {
      it(`work for ${plural}`, async () => {
        stage.serviceNamespace('team-a');
        stage.consumer.put(resource, {
          apiVersion: 'v1',
          kind: resource.kind,
          metadata: { namespace: 'team-a', name: 'one' },
        });
        await stage.open([claimOn(plural, { namedResources: [{ name: 'one' }] })]);
        assert.ok(stage.up('one', resource));
      });
    }
  });

  describe('of objects of the provider', () => {
    it('go nowhere but where the consumer uses what is bound', async () => {
      stage.namespace('team-b');
      for (const name of ['team-a', 'team-b']) {
        stage.serviceNamespace(name);
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

    it('do not go where only a definition that is not of the binding is used, which an export may name as well', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(kettles, kettle([]));
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds'));
      stage.define({ ownerReferences: [] });
      await stage.open([secretsOf('kettle'), byReference]);
      assert.equal(stage.down(), undefined);
      assert.match(stage.claims.problems().join(), /references of kettles.kitchen.example: .*not made for the binding/);
    });

    it('are not invited by objects that are not bound, though these may refer to what goes up', async () => {
      stage.serviceNamespace('team-a');
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

    it('go where the consumer refers to them, or has invited them', async () => {
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
      stage.consumer.put(namespaces, {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'team-c', labels: { 'kube-bind.io/owner': 'provider' } },
      });
      await stage.settle();
      assert.deepEqual(down(), ['team-b/creds', 'team-c/creds', 'team-c/other']);
    });

    it('come down, follow changes and deletion', async () => {
      stage.serviceNamespace('team-a');
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

    it('wait for the namespace in the consumer', async () => {
      stage.serviceNamespace('team-b');
      stage.consumer.put(kettles, kettle([], 'team-b'));
      stage.provider.put(secrets, secretIn('kb-acme-team-b', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.equal(stage.down('creds', secrets, 'team-b'), undefined);
      stage.namespace('team-b');
      await stage.settle();
      assert.ok(stage.down('creds', secrets, 'team-b'));
    });

    it('never overwrite an object without a label, and say so once', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds', { labels: {} }));
      const labels = { 'kube-bind.io/owner': 'provider' };
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'creds', { labels, data: { password: 'ZXZpbA==' } }));
      await stage.open([claimOn('secrets', { namedResources: [{ name: 'creds' }] })]);
      stage.claims.resync();
      await stage.settle();
      assert.deepEqual(stage.down()?.['data'], { password: 'c2VjcmV0' });
      assert.match(
        stage.claims.problems().join(),
        /secrets team-a\/creds: the provider has one of its own, which would overwrite it/,
      );
      assert.deepEqual([...stage.consumer.writes, ...stage.provider.writes], []);
      assert.equal(stage.events.length, 1);
      assert.equal(stage.events[0]?.reason, 'NotSynced');
    });

    it('leave the copies of another provider alone', async () => {
      stage.serviceNamespace('team-a');
      const copy = secretIn('team-a', 'creds', { labels: { app: 'kettle', 'kube-bind.io/owner': 'provider' } });
      const annotations = {
        'kube-bind.io/provider-namespace': 'kb-acme-team-a',
        'kube-bind.io/provider-uid': 'theirs',
        'binding.drawbridge.dev/provider': 'uid-of-another',
      };
      stage.consumer.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual([...stage.consumer.writes, ...stage.provider.writes], []);
      assert.ok(stage.down());
    });
  });

  describe('when their binding goes', () => {
    const crd = { name: 'kettles.kitchen.example' };
    const bind = (name: string, fields: Readonly<Record<string, unknown>> = {}) => {
      const { metadata, ...binding } = bindingManifest(fields);
      return stage.consumer.put(apiServiceBindings, {
        ...binding,
        metadata: { ...metadata, name, uid: `uid-of-${name}` },
      });
    };
    /** One object of each side is shared. */
    const share = async (): Promise<void> => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(kettles, kettle([]));
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      stage.provider.put(secrets, secretIn('kb-acme-team-a', 'theirs'));
      await stage.open([secretsOf('kettle')]);
      assert.ok(stage.up('creds') && stage.down('theirs'));
      await stage.close();
    };
    const drain = () => stage.open([secretsOf('kettle')], {}, 'drain');
    const shared = (): string[] =>
      ['creds', 'theirs'].flatMap((name) => [
        ...(stage.down(name) ? [`${name} here`] : []),
        ...(stage.up(name) ? [`${name} there`] : []),
      ]);
    const all = ['creds here', 'creds there', 'theirs here', 'theirs there'];

    it('end with what is bound: copies go, originals stay', async () => {
      await share();
      await drain();
      assert.deepEqual([shared(), stage.claims.held()], [all, 0]);
      await stage.close();
      stage.consumer.drop(customResourceDefinitions, crd);
      const told = stage.told.length;
      await drain();
      await stage.settle(1000);
      assert.deepEqual([shared(), stage.claims.held()], [['creds here', 'theirs there'], 0]);
      assert.ok(stage.told.length > told, 'the binding is told');
    });

    it('go on for another binding of the same kubeconfig that claims the kind', async () => {
      await share();
      stage.consumer.drop(customResourceDefinitions, crd);
      bind('pots', { status: { permissionClaims: [secretsOf('pot')] } });
      await drain();
      await stage.settle(1000);
      assert.deepEqual([shared(), stage.claims.held()], [all, 0]);
    });

    it('hold it up for a minute at most', async () => {
      await share();
      stage.consumer.drop(customResourceDefinitions, crd);
      stage.provider.fault = ({ verb }) => {
        if (verb === 'delete') throw new ApiError(403, 'Forbidden', 'secrets is forbidden');
      };
      await drain();
      assert.equal(stage.claims.held(), 1);
      await stage.settle(59_000);
      assert.equal(stage.claims.held(), 1);
      await stage.settle(2000);
      assert.deepEqual([stage.claims.held(), shared()], [0, ['creds here', 'creds there', 'theirs there']]);
    });
  });

  it('tell in the log why an object goes up or comes down', async () => {
    stage.serviceNamespace('team-a');
    stage.consumer.put(kettles, kettle([]));
    stage.consumer.put(secrets, secretIn('team-a', 'creds'));
    stage.provider.put(secrets, secretIn('kb-acme-team-a', 'theirs'));
    await stage.open([secretsOf('kettle')]);
    const why = 'its labels match app=kettle';
    const made = stage.logged.filter(({ action }) => action === 'create').map(({ key, side, why }) => [key, side, why]);
    assert.deepEqual(made.sort(), [
      ['team-a/creds', 'provider', why],
      ['team-a/theirs', 'consumer', why],
    ]);
  });

  it('count what they keep in step', async () => {
    stage.serviceNamespace('team-a');
    stage.consumer.put(secrets, secretIn('team-a', 'creds'));
    stage.consumer.put(secrets, secretIn('team-a', 'other', { labels: {} }));
    await stage.open([claimOn('secrets', { namedResources: [{ name: 'creds' }] })]);
    assert.deepEqual(stage.claims.size(), { objects: 1, copies: 1 });
    const series = 'drawbridge_binding_objects{binding="kettles",resource="secrets",side="consumer"}';
    assert.equal(await stage.metric(series), 1);
    await stage.close();
    assert.equal(await stage.metric(series), undefined);
  });

  describe('that are wrong', () => {
    it('are told, and the others go on', async () => {
      stage.serviceNamespace('team-a');
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([
        { group: 'apps', resource: 'deployments', selector: { labelSelector: {} } },
        claimOn('configmaps', { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } }),
        claimOn('secrets', {
          labelSelector: { matchLabels: { app: 'kettle' } },
          references: [{ group: 'kitchen.example', resource: 'kettles', jsonPath: { name: 'spec.refs[*].name' } }],
        }),
      ]);
      assert.ok(stage.up());
      const [deployments, labels, reference, ...more] = stage.claims.problems();
      assert.match(deployments ?? '', /deployments.apps is ignored: a provider may claim configmaps, secrets/);
      assert.match(labels ?? '', /configmaps selects nothing: .*Like/);
      assert.match(reference ?? '', /references of kettles.kitchen.example: the path "spec.refs\[\*\].name"/);
      assert.deepEqual(more, []);
      assert.equal(stage.claims.controllers.length, 1);
    });
  });

  describe('when something goes wrong', () => {
    it('decide on what is there, not on what a store held', async () => {
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

    it('overwrite nothing that changed in between', async () => {
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

    it('ask again at least every five seconds where rights are missing, tell it, and take it back', async () => {
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
      assert.ok(refused >= 12 && refused <= 20, `${refused} attempts`);
      assert.deepEqual(stage.claims.problems(), ['secrets team-a/creds: it is not permitted: secrets is forbidden']);
      stage.provider.fault = () => {};
      await stage.settle(5000);
      assert.ok(stage.up());
      assert.deepEqual(stage.claims.problems(), []);
    });

    it('come back together once the provider answers again', async () => {
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

    it('hold many deletes back that nobody was seen to make, and let them through when told to', async () => {
      stage.serviceNamespace('team-a');
      for (let i = 0; i < 25; i++) {
        const copy = secretIn('kb-acme-team-a', `lost-${i}`, { labels: { 'kube-bind.io/owner': 'consumer' } });
        const annotations = { 'kube-bind.io/consumer-uid': `gone-${i}` };
        stage.provider.put(secrets, { ...copy, metadata: { ...copy.metadata, annotations } });
      }
      await stage.open([secretsOf('kettle')]);
      await stage.settle(60_000);
      assert.equal(stage.provider.list(secrets).length, 25);
      assert.match(stage.claims.problems().join(), /secrets: 25 copies have no original .*allow-deletes/);
      assert.deepEqual(stage.told, [stage.claims.problems()]);
      stage.claims.allowDeletes();
      await stage.settle(1000);
      assert.equal(stage.provider.list(secrets).length, 0);
      assert.deepEqual(stage.claims.problems(), []);
      assert.deepEqual(stage.told.slice(1), [[]]);
    });

    it('tell what the provider finds invalid', async () => {
      stage.serviceNamespace('team-a');
      stage.provider.fault = ({ verb }) => {
        if (verb === 'create') throw new ApiError(422, 'Invalid', 'data is too long');
      };
      stage.consumer.put(secrets, secretIn('team-a', 'creds'));
      await stage.open([secretsOf('kettle')]);
      assert.deepEqual(stage.claims.problems(), ['secrets team-a/creds: it was refused: data is too long']);
    });

    it('do not race with somebody who keeps changing a copy', async () => {
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

    it('give up on what a webhook of the provider always changes, until the original changes', async () => {
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
      assert.match(stage.claims.problems().join(), /secrets team-a\/creds: .*changed by a webhook/);
      stage.change('consumer', 'team-a/creds', { data: { password: 'bmV3ZXI=' } });
      await stage.settle(1000);
      assert.equal(updates(), 2);
    });

    it('tell that a namespace of the provider cannot be watched', async () => {
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
        /secrets kb-acme-team-a: the secrets there cannot be listed; see that the provider grants/,
      );
      assert.deepEqual(stage.provider.writes, []);
    });

    it('leave no watch behind', async () => {
      stage.serviceNamespace('team-a');
      const before = [stage.consumer.watches, stage.provider.watches];
      await stage.open([secretsOf('kettle'), byReference]);
      await stage.close();
      // Those of the stage itself: 4 stores of the consumer and 5 of the provider.
      assert.deepEqual([stage.consumer.watches - 4, stage.provider.watches - 5], before);
    });
  });
});
