import assert from 'node:assert/strict';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  apiServiceExports,
  claimableAnnotation,
  clusterBindings,
} from '../../../../src/api/binding/names.ts';
import { namespaces } from '../../../../src/api/resources.ts';
import { bundleController } from '../../../../src/binding/bundles/controller.ts';
import { unreachableMs } from '../../../../src/binding/sessions/open-session.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { depsOf } from '../../../support/binding/deps.ts';
import { conditionsOf } from '../../../support/binding/memory-stage.ts';
import { bundleManifest, exportManifest } from '../../../support/binding/objects.ts';
import { kubeconfigText, loadYamlOnce, SessionStage } from '../../../support/binding/session-stage.ts';

const pollingMs = 15_000;
const longMs = 600_000;

describe('the controller of bundles', () => {
  let stage: SessionStage;
  let stop: AbortController;
  before(loadYamlOnce);
  beforeEach(() => {
    stage = new SessionStage();
    stop = new AbortController();
    putNamespace();
  });
  afterEach(() => stop.abort());

  function putNamespace(fields: object = {}): void {
    const metadata = { name: 'kb-acme', uid: 'uid-of-kb-acme', ...fields };
    stage.acme.cluster.put(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
  }

  async function start(...exported: string[]): Promise<void> {
    for (const name of exported) offer(name);
    stage.secret(kubeconfigText());
    stage.consumer.put(apiServiceBindingBundles, bundleManifest());
    await stage.reconcile();
    const controller = bundleController({
      ...depsOf(stage.consumer, stage.clock, { stores: stage.stores }),
      sessions: stage.registry,
      pollingMs,
    });
    void controller.run(stop.signal);
    await settle();
  }

  const settle = (ms = 0): Promise<void> => stage.settle(ms);
  const offer = (name: string): void =>
    void stage.acme.cluster.put(apiServiceExports, exportManifest({ metadata: { namespace: 'kb-acme', name } }));
  const withdraw = (name: string): void => stage.acme.cluster.drop(apiServiceExports, { namespace: 'kb-acme', name });
  const bindings = (): string[] => stage.consumer.list(apiServiceBindings).map(({ metadata }) => metadata.name);
  const conditionsByType = () => conditionsOf(stage.consumer.find(apiServiceBindingBundles, { name: 'acme' }));
  const conditions = (): string[] =>
    Object.entries(conditionsByType()).map(([type, { status, reason }]) =>
      [type, status, reason].filter(Boolean).join(' '),
    );
  const message = (type: string): string => conditionsByType()[type]?.message ?? '';
  const fine = ['Ready True', 'SecretValid True', 'Synced True'];
  const notSynced = (why: string) => [`Ready False ${why}`, 'SecretValid True', `Synced False ${why}`];

  it('deletes a binding although the provider denies the read of its namespace', async () => {
    await start('kettles', 'pots');
    stage.acme.cluster.fault = ({ verb, plural }) => {
      if (verb === 'get' && plural === 'namespaces') throw new ApiError(403, 'Forbidden', 'no rights');
    };
    withdraw('pots');
    await settle();
    assert.deepEqual(bindings(), ['kettles']);
  });

  it('creates a binding for each export, with itself as owner and its kubeconfig', async () => {
    await start('kettles', 'pots');
    assert.deepEqual(bindings(), ['kettles', 'pots']);
    const { metadata, spec } = stage.consumer.list(apiServiceBindings)[0] ?? {};
    const { uid } = stage.consumer.find(apiServiceBindingBundles, { name: 'acme' })?.metadata ?? {};
    assert.deepEqual(metadata?.ownerReferences, [
      { apiVersion: 'kube-bind.io/v1alpha2', kind: 'APIServiceBindingBundle', name: 'acme', uid, controller: true },
    ]);
    assert.deepEqual(spec, {
      kubeconfigSecretRef: { namespace: 'kube-bind', name: 'kubeconfig-acme', key: 'kubeconfig' },
    });
    assert.deepEqual(conditions(), fine);
    const { length } = stage.consumer.writes;
    await settle(3600_000);
    assert.equal(stage.consumer.writes.length, length);
    assert.deepEqual(stage.acme.cluster.calls, [], 'nothing is asked while the watch is well');
  });

  it('copies its annotation of claimable resources to the bindings that it creates', async () => {
    await start();
    const { metadata, ...rest } = bundleManifest();
    const annotations = { [claimableAnnotation]: 'secrets', 'example.com/other': 'x' };
    stage.consumer.put(apiServiceBindingBundles, { ...rest, metadata: { ...metadata, annotations } });
    await settle();
    offer('kettles');
    await settle();
    const [binding] = stage.consumer.list(apiServiceBindings);
    assert.deepEqual(binding?.metadata.annotations, { [claimableAnnotation]: 'secrets' });
  });

  it('creates a binding again after another client deleted it', async () => {
    await start('kettles');
    stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
    await settle();
    assert.deepEqual(bindings(), ['kettles']);
  });

  it('does not treat an export that is not valid as deleted', async () => {
    await start('kettles', 'pots');
    const metadata = { namespace: 'kb-acme', name: 'kettles' };
    stage.acme.cluster.put(apiServiceExports, exportManifest({ metadata, spec: { resources: [] } }));
    await settle(longMs);
    assert.deepEqual(bindings(), ['kettles', 'pots']);
    assert.deepEqual(conditions(), fine);
  });

  const doubts: [what: string, arrange: () => void, says: RegExp][] = [
    [
      'the namespace of the provider is being deleted',
      () => putNamespace({ deletionTimestamp: '2026-11-21T09:00:00Z', finalizers: ['a'] }),
      /its namespace kb-acme is being deleted/,
    ],
    [
      'the ClusterBinding is deleted too',
      () => stage.acme.cluster.drop(clusterBindings, { namespace: 'kb-acme', name: 'cluster' }),
      /has no ClusterBinding cluster/,
    ],
    [
      'the provider denies access to our ClusterBinding',
      () => {
        stage.acme.cluster.fault = ({ verb, plural }) => {
          if (verb === 'get' && plural === 'clusterbindings') throw new ApiError(403, 'Forbidden', 'no rights');
        };
      },
      /its ClusterBinding cluster cannot be read: no rights/,
    ],
  ];
  for (const [what, arrange, says] of doubts) {
    it(`deletes nothing when ${what}`, async () => {
      await start('kettles', 'pots');
      arrange();
      withdraw('kettles');
      withdraw('pots');
      await settle(longMs);
      assert.deepEqual(bindings(), ['kettles', 'pots']);
      assert.deepEqual(conditions(), notSynced('ExportsVanished'));
      assert.match(message('Synced'), says);
      assert.match(message('Synced'), /provider has no export for kettles, pots, and the server keeps these bindings/);
    });
  }

  it('deletes nothing if a provider that was restored from a backup lacks one of several exports', async () => {
    await start('kettles', 'pots');
    stage.reconciler.suspend();
    withdraw('kettles');
    await settle();
    await stage.reconcile();
    await settle(longMs);
    assert.deepEqual(bindings(), ['kettles', 'pots']);
    assert.match(message('Synced'), /for kettles, and the server keeps these bindings: the provider no longer lists/);
    withdraw('pots');
    await settle();
    assert.deepEqual(bindings(), ['kettles'], 'what is seen being deleted is');
  });

  it('lists exports at intervals while they cannot be watched', async () => {
    stage.acme.down = true;
    await start();
    await settle(unreachableMs);
    assert.deepEqual(conditions(), notSynced('ListExportsFailed'));
    assert.match(message('Synced'), /ECONNREFUSED/);
    offer('kettles');
    stage.acme.down = false;
    await settle(pollingMs * 1.1);
    assert.deepEqual(bindings(), ['kettles']);
    assert.deepEqual(conditions(), fine);
    assert.equal(stage.lookup().kind, 'session');
  });

  it('only reports that its Secret is not valid', async () => {
    await start('kettles');
    stage.secret('{');
    await stage.reconcile();
    withdraw('kettles');
    offer('pots');
    await settle(longMs);
    assert.deepEqual(bindings(), ['kettles']);
    const reason = 'KubeconfigSecretInvalid';
    assert.deepEqual(conditions(), [`Ready False ${reason}`, `SecretValid False ${reason}`, 'Synced True']);
    stage.secret(kubeconfigText());
    await stage.reconcile();
    await settle();
    assert.deepEqual(bindings(), ['pots']);
  });

  it('reports the number of failed creates, and retries', async () => {
    stage.consumer.fault = ({ verb }) => {
      if (verb === 'create') throw new Error('quota');
    };
    await start('kettles', 'pots');
    assert.match(message('Synced'), /^failed calls: 2; first error: quota; the server retries$/);
    stage.consumer.fault = () => {};
    await settle(30_000);
    assert.deepEqual(bindings(), ['kettles', 'pots']);
    assert.deepEqual(conditions(), fine);
  });
});
