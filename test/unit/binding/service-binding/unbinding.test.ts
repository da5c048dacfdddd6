import assert from 'node:assert/strict';
import {
  apiServiceBindings,
  apiServiceExports,
  boundSchemas,
  syncerFinalizer,
  unbindPolicyAnnotation,
} from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { crdName } from '../../../support/binding/memory-stage.ts';
import { boundSchemaManifest, exportManifest } from '../../../support/binding/objects.ts';
import { BindingStage, tooLarge, working } from './binding-stage.ts';

describe('the unbinding', () => {
  let stage: BindingStage;
  beforeEach(async () => {
    stage = new BindingStage();
    await stage.bound();
    stage.stopServing();
    stage.object();
  });
  const dropExport = () => stage.provider.drop(apiServiceExports, { namespace: 'kb-acme', name: 'kettles' });
  const dropCrd = () => stage.consumer.drop(customResourceDefinitions, { name: crdName });
  const running = { binding: 'kettles', crd: crdName, mode: 'sync', syncer: working() } as const;

  describe('when the export is deleted', () => {
    beforeEach(dropExport);

    it('removes the finalizer from the objects, and keeps them and their CRD', async () => {
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
      assert.ok(stage.crd());
      assert.deepEqual(stage.deps.stores.bindings.get('kettles')?.boundSchemas.length, 1);
      const calls = () => stage.consumer.calls.length + stage.provider.calls.length;
      const before = calls();
      await stage.look();
      assert.equal(calls(), before);
    });

    it('waits until their syncer has stopped', async () => {
      stage.syncers.add(running);
      await stage.look();
      assert.ok(stage.finalizers()?.includes(syncerFinalizer));
      stage.syncers.delete(running);
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
    });

    it('keeps the finalizers if the export exists and is not valid', async () => {
      stage.provider.put(apiServiceExports, exportManifest({ spec: tooLarge() }));
      await stage.look();
      assert.ok(stage.finalizers()?.includes(syncerFinalizer));
      assert.equal(stage.said()['Connected']?.reason, 'APIServiceExportInvalid');
      assert.deepEqual(stage.deps.stores.bindings.get('kettles')?.boundSchemas.length, 1);
      await stage.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
      await stage.look();
      assert.ok(stage.finalizers()?.includes(syncerFinalizer));
      assert.match(stage.said()['Connected']?.message ?? '', /cannot be deleted; .* kubectl annotate .*=Orphan/);
    });

    for (const [what, error] of [
      ['while the provider does not serve exports', new ApiError(404, '', '404 page not found')],
      ['until a read confirms the deletion', new ApiError(403, 'Forbidden', 'no rights')],
    ] as const) {
      it(`keeps the finalizers ${what}`, async () => {
        stage.provider.fault = () => {
          throw error;
        };
        await assert.rejects(stage.look(), error);
        assert.ok(stage.finalizers()?.includes(syncerFinalizer));
      });
    }
  });

  describe('when the binding is deleted', () => {
    const annotate = (value: string) =>
      stage.bind({ ...stage.binding()?.metadata, annotations: { [unbindPolicyAnnotation]: value } });
    const remove = () => stage.consumer.client.delete(apiServiceBindings, { name: 'kettles' });

    it('deletes the CRD, waits for its deletion, and removes the finalizer of the binding', async () => {
      await remove();
      assert.equal((await stage.look()).kind, 'after');
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
      assert.ok(stage.finalizers()?.includes(syncerFinalizer), 'copies are deleted before');
      assert.deepEqual(stage.said()['Connected'], {
        status: 'False',
        severity: 'Info',
        reason: 'Unbinding',
        message: `waiting for CustomResourceDefinitions to be deleted: ${crdName}`,
      });
      const { writes } = stage.consumer;
      await stage.look();
      assert.deepEqual(stage.consumer.writes, writes);
      dropCrd();
      await stage.look();
      assert.match(stage.said()['Connected']?.message ?? '', /waiting for the syncers to start/);
      let held = Number.POSITIVE_INFINITY;
      const syncer = working({ remaining: () => held });
      stage.syncers.add({ binding: 'kettles', crd: crdName, mode: 'drain', syncer });
      await stage.look();
      assert.match(stage.said()['Connected']?.message ?? '', /deletion of the copies of objects \(not counted yet\)/);
      held = 2;
      await stage.look();
      assert.match(stage.said()['Connected']?.message ?? '', /waiting for the deletion of the copies of 2 objects/);
      held = 0;
      await stage.look();
      assert.equal(stage.binding(), undefined);
    });

    it('keeps the copies with policy Orphan, once their syncer has stopped', async () => {
      annotate('Orphan');
      await remove();
      stage.syncers.add(running);
      await stage.look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
      stage.syncers.delete(running);
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
    });

    it('names the kind and the cause if its objects cannot be listed', async () => {
      annotate('Orphan');
      await remove();
      stage.consumer.fault = ({ verb, plural }) => {
        if (verb === 'list' && plural === 'kettles') throw new ApiError(403, 'Forbidden', 'may not list');
      };
      assert.equal((await stage.look()).kind, 'retry');
      assert.match(stage.said()['Connected']?.message ?? '', /could not be listed: .*may not list; /);
    });

    it('waits while a provider is read after a restart, and warns only if that fails', async () => {
      await remove();
      await stage.look();
      stage.session.state = { kind: 'connecting' };
      await stage.look();
      const { severity, message } = stage.said()['Connected'] ?? {};
      const lists = `waiting for the lists of the provider, to delete the copies of ${crdName} there`;
      assert.deepEqual([severity, message], ['Info', lists]);
      stage.session.state = { kind: 'connecting', problem: 'ECONNREFUSED' };
      await stage.look();
      assert.equal(stage.said()['Connected']?.severity, 'Warning');
      assert.match(stage.said()['Connected']?.message ?? '', /server has not listed the objects of the provider yet/);
    });

    it('reports a schema that no longer fits the objects', async () => {
      const { spec, ...rest } = boundSchemaManifest();
      stage.provider.put(boundSchemas, { ...rest, spec: { ...Object(spec), scope: 'Cluster' } });
      await remove();
      await stage.look();
      assert.match(stage.said()['Connected']?.message ?? '', /no valid APIServiceExport kettles .*=Orphan/);
    });

    it('removes the finalizer from objects whose export is deleted', async () => {
      dropExport();
      await remove();
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
      assert.ok(stage.crd()?.metadata.deletionTimestamp);
    });

    const disown = () => {
      const crd = stage.crd();
      assert.ok(crd);
      stage.consumer.put(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, ownerReferences: [] } });
    };

    it('keeps a CRD that it no longer owns, even if the store is stale', async () => {
      await remove();
      stage.consumer.deliver = () => undefined;
      disown();
      await stage.look();
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
    });

    it('does not change a CRD of another owner', async () => {
      disown();
      await remove();
      await stage.look();
      assert.equal(stage.binding(), undefined);
      assert.equal(stage.crd()?.metadata.deletionTimestamp, undefined);
    });

    it('reports a failure, and retries', async () => {
      dropExport();
      stage.provider.fault = () => {
        throw new TransportError('connect ECONNREFUSED', undefined, true);
      };
      await remove();
      assert.equal((await stage.look()).kind, 'retry');
      assert.match(stage.said()['Connected']?.message ?? '', /unbinding failed: connect ECONNREFUSED/);
      assert.ok(stage.finalizers()?.includes(syncerFinalizer));
    });

    it('removes the finalizer from the objects of a binding that was deleted by force', async () => {
      stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
    });
  });

  it('reports its status, even if the objects of an earlier binding cannot be released', async () => {
    const binding = stage.binding();
    assert.ok(binding);
    stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
    const { status: _, ...fresh } = binding;
    stage.consumer.put(apiServiceBindings, { ...fresh, metadata: { ...binding.metadata, uid: 'another' } });
    stage.consumer.fault = ({ verb, plural }) => {
      if (verb === 'patch' && plural === 'kettles') throw new ApiError(403, 'Forbidden', 'may not patch');
    };
    await assert.rejects(stage.look());
    assert.equal(stage.said()['Connected']?.reason, 'ForeignCustomResourceDefinition');
  });

  describe('of a binding that is not valid', () => {
    const put = (metadata: object = {}) => {
      const binding = stage.binding();
      assert.ok(binding);
      const spec = { kubeconfigSecretRef: 'odd' };
      stage.consumer.put(apiServiceBindings, { ...binding, metadata: { ...binding.metadata, ...metadata }, spec });
    };
    beforeEach(() => put());

    it('keeps the finalizers while the binding exists', async () => {
      await stage.look();
      assert.ok(stage.finalizers()?.includes(syncerFinalizer));
      assert.equal(stage.said()['SecretValid']?.reason, 'APIServiceBindingInvalid');
      stage.consumer.drop(apiServiceBindings, { name: 'kettles' });
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
    });

    it('continues with the policy of the annotation', async () => {
      await stage.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
      await stage.look();
      assert.match(stage.said()['Connected']?.message ?? '', /no valid kubeconfig .*=Orphan/);
      put({ annotations: { [unbindPolicyAnnotation]: 'Orphan' } });
      await stage.look();
      assert.deepEqual(stage.finalizers(), ['example.com/other']);
      dropCrd();
      await stage.look();
      assert.equal(stage.binding(), undefined);
    });
  });
});
