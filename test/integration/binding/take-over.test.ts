import assert from 'node:assert/strict';
import { fixtureObject } from '../../../sandbox/binding/fixture-kinds.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import { consumerKinds } from '../../../src/api/binding/kinds.ts';
import {
  apiServiceBindings,
  apiServiceExports,
  apiServiceNamespaces,
  bindGroup,
  bindVersion,
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
} from '../../../src/api/binding/names.ts';
import type { KubeObject, OwnerReference } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { customResourceDefinition } from '../../../src/api/schema/crd.ts';
import { own } from '../../../src/kit/json-value.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const patience = { timeoutMs: 30_000 };
const apiVersion = `${bindGroup}/${bindVersion}`;
/** The field manager of every object that kube-bind's konnector creates. */
const theirs = { fieldManager: 'konnector' };

describe("the objects of kube-bind's konnector", () => {
  let stage: BindingStage;
  let serviceNamespace: string;
  const copies = new Map<string, KubeObject>();
  const kind = () => stage.kinds.kettles;
  const name = (kettle: string) => ({ namespace: stage.side.namespace, name: kettle });
  const copyOf = (kettle: string) => stage.copy(kind(), name(kettle));

  const ownerOf = ({ kind, metadata }: KubeObject): OwnerReference => ({
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
  });

  /** Installs the CRDs as kube-bind's konnector does, without the revision annotation. */
  async function installTheirCrds(): Promise<void> {
    const { client, plane } = stage.side.consumer;
    for (const kind of consumerKinds) await client.create(customResourceDefinitions, customResourceDefinition(kind));
    for (const kind of consumerKinds) await whenServed(plane, customResourceDefinition(kind).metadata.name);
  }

  /** An object and its copy as kube-bind's konnector creates them. Before April 2026, its copies did not name their original. */
  async function synced(kettle: string, { tells = true } = {}): Promise<void> {
    const { consumer, backend } = stage.side;
    const object = fixtureObject(kind(), name(kettle), { heat: 100, note: 'theirs' });
    const created = await consumer.client.create(kind().inConsumer, {
      ...object,
      metadata: { ...object.metadata, finalizers: [syncerFinalizer] },
    });
    const annotations = {
      [clusterNamespaceAnnotation]: backend.clusterNamespace,
      ...(tells
        ? {
            [consumerNamespaceAnnotation]: stage.side.namespace,
            [consumerUidAnnotation]: created.metadata.uid ?? '',
          }
        : {}),
    };
    const copy = await stage.provider.client.create(
      kind().inProvider,
      { ...object, metadata: { namespace: serviceNamespace, name: kettle, annotations } },
      theirs,
    );
    copies.set(kettle, copy);
    const marks = { [providerNamespaceAnnotation]: serviceNamespace, [providerUidAnnotation]: copy.metadata.uid };
    await consumer.client.mergePatch(kind().inConsumer, name(kettle), { metadata: { annotations: marks } });
  }

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    const { consumer, backend, namespace } = stage.side;
    await installTheirCrds();
    await backend.export({ name: 'kitchen', kinds: [kind()] });
    await consumer.bind('kitchen', await consumer.connect(backend.identity.kubeconfig));
    const binding = await consumer.client.get(apiServiceBindings, { name: 'kitchen' });
    await consumer.client.create(customResourceDefinitions, {
      ...kind().crd,
      metadata: { name: kind().crd.metadata.name, ownerReferences: [ownerOf(binding)] },
    });
    await whenServed(consumer.plane, kind().crd.metadata.name);
    // Its APIServiceNamespaces have the first export that needed them as owner.
    const where = { namespace: backend.clusterNamespace, name: 'kitchen' };
    const exported = await stage.provider.client.get(apiServiceExports, where);
    await stage.provider.client.create(apiServiceNamespaces, {
      apiVersion,
      kind: apiServiceNamespaces.kind,
      metadata: { namespace: backend.clusterNamespace, name: namespace, ownerReferences: [ownerOf(exported)] },
      spec: {},
    });
    serviceNamespace = await backend.whenNamespace(namespace);
    await synced('present');
    await synced('older', { tells: false });
    await synced('vanished');
    await synced('vanished-older', { tells: false });
    // Deleted while neither konnector ran.
    for (const gone of ['vanished', 'vanished-older']) {
      await consumer.client.mergePatch(kind().inConsumer, name(gone), { metadata: { finalizers: null } });
      await consumer.client.delete(kind().inConsumer, name(gone));
    }
    await consumer.start();
    await consumer.whenCondition('kitchen', 'Ready');
  });
  after(async () => stage.close());

  it('are adopted unchanged: no copy is recreated', async () => {
    for (const kettle of ['present', 'older']) {
      await stage.whenSynced(kind(), name(kettle));
      assert.equal((await copyOf(kettle))?.metadata.uid, copies.get(kettle)?.metadata.uid, kettle);
    }
    const made = stage.writes(kind()).filter(({ verb }) => verb === 'create');
    assert.deepEqual(made, []);
  });

  it('get the missing annotations', async () => {
    const { uid } = (await stage.side.consumer.get(kind().inConsumer, name('older')))?.metadata ?? {};
    await stage.whenCopy(
      kind(),
      name('older'),
      ({ metadata }) => metadata.annotations?.[consumerUidAnnotation] === uid,
    );
  });

  it('include a copy that stays after an unobserved deletion of its object, because it does not name its original', async () => {
    for (const gone of ['vanished', 'vanished-older']) assert.ok(await copyOf(gone), gone);
  });

  it('are synced, including removals', async () => {
    const { client } = stage.side.consumer;
    for (const kettle of ['present', 'older']) {
      await client.mergePatch(kind().inConsumer, name(kettle), { spec: { heat: 200, note: null } });
      const copy = await stage.whenCopy(kind(), name(kettle), ({ spec }) => own(spec, 'heat') === 200);
      assert.equal(own(copy.spec, 'note'), undefined);
      await stage.report(kind(), name(kettle), { result: 'hot' });
      await stage.whenObject(kind(), name(kettle), ({ status }) => own(status, 'result') === 'hot');
    }
  });

  it('are deleted with their originals', async () => {
    for (const kettle of ['present', 'older']) {
      await stage.side.consumer.client.delete(kind().inConsumer, name(kettle));
      await stage.whenObjectGone(kind(), name(kettle));
      assert.equal(await copyOf(kettle), undefined);
    }
  });

  it('include a binding that can be unbound', async () => {
    const { consumer } = stage.side;
    await stage.create(kind(), name('last'));
    await stage.whenSynced(kind(), name('last'));
    await consumer.client.delete(apiServiceBindings, { name: 'kitchen' });
    const gone = async () => (await consumer.get(apiServiceBindings, { name: 'kitchen' })) === undefined;
    await until('the binding to be gone', gone, patience);
    assert.equal(await copyOf('last'), undefined);
    for (const gone of ['vanished', 'vanished-older']) assert.ok(await copyOf(gone), gone);
  });

  it('caused no denied call', () => {
    assert.deepEqual(stage.side.consumer.refusals(), []);
  });
});
