import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fixtureObject } from '../../../sandbox/binding/fixture-kinds.ts';
import { until } from '../../../sandbox/wait.ts';
import {
  apiServiceBindingBundles,
  apiServiceBindings,
  kubeconfigKey,
  ownerLabel,
  syncerFinalizer,
} from '../../../src/api/binding/names.ts';
import type { KubeObject, ObjectName } from '../../../src/api/object.ts';
import { customResourceDefinitions, namespaces, secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingChartStage } from '../../support/binding/chart-stage.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { kitchenClaim, kitchenSecret } from '../../support/binding/kitchen-secrets.ts';
import { deniedCalls, rightFor, serverRightsIn } from '../../support/chart-manifests.ts';

const secret = 'kubeconfig-acme';
const alone = { features: { access: false, binding: true } };

/** Permissions that need a fault or a dry run, and where the server uses them. */
const usedElsewhere: Readonly<Record<string, string>> = {
  'get chart.kitchen.example/kettles': '../../unit/binding/sync/syncer.test.ts',
  'get chart.kitchen.example/ovens': '../../unit/binding/sync/syncer.test.ts',
  'get kube-bind.io/apiservicebindingbundles': '../../unit/binding/dry-run.test.ts',
  'get kube-bind.io/apiservicebindings': '../../unit/binding/dry-run.test.ts',
  'patch apiextensions.k8s.io/customresourcedefinitions': '../../unit/binding/consumer-crds.test.ts',
  'patch events.k8s.io/events': '../../unit/kube/event-recorder.test.ts',
};

describe('the chart with binding, installed by Helm', function () {
  this.timeout(240_000);
  let stage: BindingChartStage;
  let kettle: ObjectName;
  let copy: ObjectName;
  const oven = { name: 'big' };

  before(async () => {
    stage = await BindingChartStage.open();
    const { backend, kinds, kitchen } = stage;
    kettle = { namespace: kitchen, name: 'evening' };
    copy = { namespace: backend.serviceNamespaceOf(kitchen), name: kettle.name };
    await backend.export({ name: 'kettles', kinds: [kinds.kettles], claims: [kitchenClaim] });
    await backend.export({ name: 'ovens', kinds: [kinds.ovens] });
  });
  after(() => stage?.close());

  it('becomes ready alone, without webhooks, certificates and access kinds', async () => {
    await stage.helmWithValues('install', alone);
    assert.equal(stage.kubelet.pods.filter(({ endpoint }) => endpoint).length, 2);
    const { items } = await stage.client.list(customResourceDefinitions);
    assert.deepEqual(items.map(({ metadata }) => metadata.name).sort(), [
      'apiservicebindingbundles.kube-bind.io',
      'apiservicebindings.kube-bind.io',
    ]);
    for (const kind of ['mutating', 'validating']) {
      const url = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
      assert.deepEqual(((await stage.plane.probe(url)).body as { items: unknown[] }).items, []);
    }
  });

  it("holds the Lease that kube-bind's konnector would take", async () => {
    const holder = await until('a holder', () => stage.holder('kube-bind', 'kube-bind'), { timeoutMs: 30_000 });
    assert.ok(stage.kubelet.pods.some(({ name }) => holder.startsWith(name)));
  });

  it('binds with the permissions of its own ServiceAccount', async () => {
    await stage.connect(secret);
    await stage.bind('kettles', secret);
    await stage.whenReady('kettles');
    await create();
    const found = await stage.when(stage.kinds.kettles.inProvider, copy, undefined, stage.provider.client);
    assert.deepEqual(found.spec, { heat: 100 });
    await report('boiling');
    const object = await stage.when(stage.kinds.kettles.inConsumer, kettle, saysResult('boiling'));
    assert.deepEqual(object.metadata.finalizers, [syncerFinalizer]);
  });

  it('binds through a bundle what the provider exports', async () => {
    const { backend, client, kinds, provider } = stage;
    await stage.bundle('acme', secret);
    await stage.whenReady('ovens');
    await client.create(kinds.ovens.inConsumer, fixtureObject(kinds.ovens, oven));
    const its = { name: `${backend.clusterNamespace}-${oven.name}` };
    await stage.when(kinds.ovens.inProvider, its, undefined, provider.client);
    const status = { result: 'warm' };
    await provider.client.mergePatch(kinds.ovens.inProvider, its, { status }, { subresource: 'status' });
    await stage.when(kinds.ovens.inConsumer, oven, saysResult('warm'));
  });

  it('keeps a binding that its bundle would create again, and names the command that unbinds its kind', async () => {
    const { client, kinds, plane } = stage;
    const { code, stderr } = await plane.kubectl(['delete', 'sb', 'ovens'], { reject: false });
    assert.equal(code, 1);
    assert.match(stderr, /Bundled: the bundle acme would create the binding again, and all objects .* lost/);
    assert.match(stderr, /run kubectl delete sbb acme --cascade=orphan first/);
    const { metadata } = await stage.when(apiServiceBindings, { name: 'ovens' });
    assert.equal(metadata.deletionTimestamp, undefined);
    assert.equal((await stage.when(kinds.ovens.inConsumer, oven)).metadata.deletionTimestamp, undefined);
    assert.ok(await getIfThere(client, apiServiceBindingBundles, { name: 'acme' }));
  });

  it('unbinds that kind after the bundle was deleted without its bindings', async () => {
    const { kinds, plane, provider, backend } = stage;
    // The garbage collector removes the owners. It may take half a minute to discover new kinds.
    await plane.kubectl(['delete', 'sbb', 'acme', '--cascade=orphan', '--timeout=60s']);
    await plane.kubectl(['delete', 'sb', 'ovens', '--timeout=60s']);
    await stage.whenGone(customResourceDefinitions, { name: kinds.ovens.crd.metadata.name });
    const its = { name: `${backend.clusterNamespace}-${oven.name}` };
    await stage.whenGone(kinds.ovens.inProvider, its, provider.client);
  });

  it('unbinds an export that its provider withdraws from a bundle', async () => {
    await stage.bundle('acme', secret);
    await stage.whenReady('ovens');
    await stage.backend.withdraw('ovens');
    await stage.whenGone(apiServiceBindings, { name: 'ovens' });
  });

  it('shares claimed objects, and creates only allowed namespaces', async () => {
    const { backend, client, kitchen, provider } = stage;
    await backend.claimNamespace('not-for-acme');
    await backend.claimNamespace('from-acme');
    await stage.when(namespaces, { name: 'from-acme' });
    const logged = async (): Promise<boolean> =>
      /a namespace that is not in --bindable-namespaces.*not-for-acme/.test(await stage.kubelet.logs());
    await until('the refusal in the log', logged, { timeoutMs: 30_000 });
    assert.equal(await getIfThere(client, namespaces, { name: 'not-for-acme' }), undefined);
    const mine = { namespace: kitchen, name: 'mine' };
    await client.create(secrets, kitchenSecret(mine, 'mine'));
    const up = await stage.when(secrets, { ...copy, name: 'mine' }, undefined, provider.client);
    assert.equal(up.metadata.labels?.[ownerLabel], 'consumer');
    await provider.client.create(secrets, kitchenSecret({ ...copy, name: 'theirs' }, 'theirs'));
    await stage.when(secrets, { namespace: kitchen, name: 'theirs' });
    await provider.client.mergePatch(secrets, { ...copy, name: 'theirs' }, { data: { key: 'bmV3' } });
    await stage.when(secrets, { namespace: kitchen, name: 'theirs' }, (found) => own(found['data'], 'key') === 'bmV3');
    await provider.client.delete(secrets, { ...copy, name: 'theirs' });
    await stage.whenGone(secrets, { namespace: kitchen, name: 'theirs' });
  });

  it('follows new credentials, a deleted namespace, and a new schema', async () => {
    const { backend, client, kinds, provider } = stage;
    await backend.identity.rotate();
    const isCurrent = (found: KubeObject): boolean =>
      own(found['data'], kubeconfigKey) === Buffer.from(backend.identity.kubeconfig).toString('base64');
    await stage.when(secrets, { namespace: 'kube-bind', name: secret }, isCurrent);
    const scullery = { namespace: 'scullery', name: 'small' };
    const metadata = { name: scullery.namespace };
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
    await client.create(kinds.kettles.inConsumer, fixtureObject(kinds.kettles, scullery));
    const its = { name: await backend.whenNamespace(scullery.namespace) };
    await stage.when(kinds.kettles.inProvider, { ...scullery, namespace: its.name }, undefined, provider.client);
    await client.delete(namespaces, metadata);
    await stage.whenGone(namespaces, metadata);
    await stage.whenGone(namespaces, its, provider.client);
    await backend.changeSchema(kinds.kettles, () => ({ names: { shortNames: ['kt'] } }));
    const name = kinds.kettles.crd.metadata.name;
    const isNew = ({ spec }: KubeObject): boolean => JSON.stringify(own(spec, 'names')).includes('kt');
    await stage.when(customResourceDefinitions, { name }, isNew);
  });

  it('has exactly the permissions that it uses', async () => {
    const calls = stage.plane.auditLog.calls({ user: stage.serverUser });
    assert.deepEqual(deniedCalls(stage.plane, stage.serverUser), []);
    const held = serverRightsIn(await stage.helm.manifest(stage.namespace));
    const used = new Set(calls.map(rightFor));
    for (const [right, file] of Object.entries(usedElsewhere)) {
      assert.ok(held.includes(right), right);
      assert.ok(existsSync(join(import.meta.dirname, file)), file);
    }
    const idle = held.filter((right) => !used.has(right) && !(right in usedElsewhere));
    assert.deepEqual(idle, []);
    assert.deepEqual(
      [...used].filter((right) => !held.includes(right)),
      [],
    );
  });

  it('keeps bindings when access is added in its own Deployment', async () => {
    await stage.helmWithValues('upgrade', { features: { access: true, binding: true } });
    const leases: [string, string][] = [
      [stage.namespace, 'drawbridge-access'],
      ['kube-bind', 'kube-bind'],
    ];
    for (const [namespace, lease] of leases) {
      const held = async (): Promise<boolean> => {
        const holder = await stage.holder(namespace, lease);
        return stage.kubelet.pods.some(({ name }) => holder.startsWith(name));
      };
      await until(`a holder of ${lease}`, held, { timeoutMs: 60_000 });
    }
    await report('cold');
    await stage.when(stage.kinds.kettles.inConsumer, kettle, saysResult('cold'));
  });

  it('is not upgraded to binding alone, which would leave no server to end access', async () => {
    await assert.rejects(stage.helmWithValues('upgrade', alone), /features\.access: this release has it enabled/);
  });

  it('leaves bindings, objects and their copies as they are when it is uninstalled', async () => {
    const { client, kinds, provider } = stage;
    const check = async (): Promise<(string | undefined)[]> => {
      const found = await Promise.all([
        getIfThere(client, apiServiceBindings, { name: 'kettles' }),
        getIfThere(client, secrets, { namespace: 'kube-bind', name: secret }),
        getIfThere(client, kinds.kettles.inConsumer, kettle),
        getIfThere(provider.client, kinds.kettles.inProvider, copy),
        getIfThere(provider.client, secrets, { ...copy, name: 'mine' }),
      ]);
      return found.map((object) => (object && !object.metadata.deletionTimestamp ? object.metadata.uid : undefined));
    };
    const before = await check();
    assert.ok(
      before.every((uid) => uid !== undefined),
      `${before}`,
    );
    const said = await stage.uninstall();
    assert.match(said, /release "drawbridge" uninstalled/, `${said}\n${await stage.kubelet.logs()}`);
    assert.deepEqual(await check(), before);
  });

  it('continues where it stopped after a reinstallation', async () => {
    const { client, kinds, provider } = stage;
    await client.mergePatch(kinds.kettles.inConsumer, kettle, { spec: { heat: 60 } });
    await stage.helmWithValues('install', alone);
    const isNew = ({ spec }: KubeObject): boolean => own(spec, 'heat') === 60;
    await stage.when(kinds.kettles.inProvider, copy, isNew, provider.client);
    await client.delete(apiServiceBindings, { name: 'kettles' });
    await stage.whenGone(apiServiceBindings, { name: 'kettles' });
    await stage.whenGone(kinds.kettles.inProvider, copy, provider.client);
  });

  const create = (): Promise<KubeObject> =>
    stage.client.create(stage.kinds.kettles.inConsumer, fixtureObject(stage.kinds.kettles, kettle));

  const report = async (result: string): Promise<void> => {
    const { kinds, provider } = stage;
    await provider.client.mergePatch(kinds.kettles.inProvider, copy, { status: { result } }, { subresource: 'status' });
  };

  const saysResult =
    (result: string) =>
    ({ status }: KubeObject): boolean =>
      own(status, 'result') === result;
});
