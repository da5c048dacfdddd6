import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  bindFieldManager,
  bindGroup,
  clusterNamespaceAnnotation,
  consumerNamespaceAnnotation,
  consumerUidAnnotation,
  providerNamespaceAnnotation,
  providerUidAnnotation,
  syncerFinalizer,
  unbindFinalizer,
} from '../../../src/api/binding/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { BindingStage } from '../../support/binding/stage.ts';
import { runAsReader, scriptOf } from '../../support/page-commands.ts';

/**
 * The rollback. Instead of running kube-bind's konnector, each test makes the same calls as its code, as the administrator, because its
 * konnector has these permissions.
 */
describe("for kube-bind's konnector, this konnector leaves", () => {
  let stage: BindingStage;
  let binding: KubeObject;
  const kind = () => stage.kinds.kettles;
  const name = (kettle: string) => ({ namespace: stage.side.namespace, name: kettle });
  const ours = async (kettle: string): Promise<KubeObject> => {
    const object = await stage.side.consumer.get(kind().inConsumer, name(kettle));
    assert.ok(object);
    return object;
  };
  const copyOf = async (kettle: string): Promise<KubeObject> => {
    const copy = await stage.copy(kind(), name(kettle));
    assert.ok(copy);
    return copy;
  };

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open();
    const { consumer } = stage.side;
    await consumer.start();
    await stage.bind('kitchen', [kind()]);
    await stage.create(kind(), name('tea'), { heat: 100 });
    await stage.whenSynced(kind(), name('tea'));
    await stage.report(kind(), name('tea'), { result: 'hot' });
    await stage.whenObject(kind(), name('tea'), ({ status }) => JSON.stringify(status) === '{"result":"hot"}');
    assert.equal(await consumer.konnector.stop(), 0);
    binding = await consumer.client.get(apiServiceBindings, { name: 'kitchen' });
  });
  after(() => stage.close());

  it('a CRD that it recognizes as its own: with an owner of the name and uid of the binding', async () => {
    const { metadata } = await stage.side.consumer.client.get(customResourceDefinitions, {
      name: kind().crd.metadata.name,
    });
    const owns = (metadata.ownerReferences ?? []).filter(
      ({ apiVersion, kind: of, name: owner, uid }) =>
        apiVersion.startsWith(`${bindGroup}/`) &&
        of === apiServiceBindings.kind &&
        owner === binding.metadata.name &&
        uid === binding.metadata.uid,
    );
    assert.equal(owns.length, 1);
    assert.deepEqual(metadata.finalizers, undefined, 'the garbage collector may have it after the binding');
  });

  it('objects with its finalizer and its annotations, and nothing else', async () => {
    const { metadata } = await ours('tea');
    const copy = await copyOf('tea');
    assert.deepEqual(metadata.finalizers, [syncerFinalizer]);
    assert.deepEqual(metadata.annotations, {
      [providerNamespaceAnnotation]: copy.metadata.namespace,
      [providerUidAnnotation]: copy.metadata.uid,
    });
    assert.deepEqual(metadata.labels, undefined);
  });

  it('copies that it recognizes as its own, without finalizers', async () => {
    const { metadata } = await copyOf('tea');
    const { annotations = {} } = metadata;
    assert.equal(annotations[clusterNamespaceAnnotation], stage.side.backend.clusterNamespace);
    assert.equal(annotations[consumerNamespaceAnnotation], stage.side.namespace);
    assert.equal(annotations[consumerUidAnnotation], (await ours('tea')).metadata.uid);
    assert.deepEqual(metadata.finalizers, undefined);
  });

  it('copies that it can sync: it applies the whole copy with another spec', async () => {
    const { managedFields: _, ...metadata } = (await copyOf('tea')).metadata;
    const wanted = { ...(await copyOf('tea')), metadata, spec: { heat: 60 } };
    const options = { fieldManager: bindFieldManager, force: true };
    const applied = await stage.provider.client.apply(kind().inProvider, wanted, options);
    assert.deepEqual(applied.spec, { heat: 60 });
    const object = await ours('tea');
    const { client } = stage.side.consumer;
    await client.replace(kind().inConsumer, { ...object, status: { result: 'warm' } }, { subresource: 'status' });
    assert.deepEqual((await ours('tea')).status, { result: 'warm' });
  });

  it('objects that it can delete: it deletes the copy and removes the finalizer', async () => {
    const { client } = stage.side.consumer;
    await client.delete(kind().inConsumer, name('tea'));
    await stage.provider.client.delete(kind().inProvider, stage.copyName(kind(), name('tea')));
    const { metadata, ...rest } = await ours('tea');
    const finalizers = metadata.finalizers?.filter((finalizer) => finalizer !== syncerFinalizer) ?? [];
    await client.replace(kind().inConsumer, { ...rest, metadata: { ...metadata, finalizers } });
    await stage.whenObjectGone(kind(), name('tea'));
  });

  it('a binding that is deleted once kubectl removed its finalizer, as docs/binding/migrate-from-kube-bind.md says', async () => {
    const { consumer } = stage.side;
    assert.deepEqual(binding.metadata.finalizers, [unbindFinalizer]);
    const remove = scriptOf('docs/binding/migrate-from-kube-bind.md', 'kubectl replace');
    await runAsReader({ plane: consumer.plane, folder: consumer.plane.directory }, remove);
    await consumer.client.delete(apiServiceBindings, { name: 'kitchen' });
    assert.equal(await consumer.get(apiServiceBindings, { name: 'kitchen' }), undefined);
  });
});
