import assert from 'node:assert/strict';
import { boundSchemas } from '../../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../../src/api/resources.ts';
import { crdName, crdSpec } from '../../../support/binding/memory-stage.ts';
import { boundSchemaManifest } from '../../../support/binding/objects.ts';
import { BindingStage } from './binding-stage.ts';

describe('the CRD of a binding', () => {
  let stage: BindingStage;
  beforeEach(() => {
    stage = new BindingStage();
  });

  it('restores a changed CRD to its BoundSchema', async () => {
    await stage.bound();
    const crd = stage.crd();
    assert.ok(crd);
    stage.consumer.put(customResourceDefinitions, { ...crd, spec: { ...crdSpec, scope: 'Cluster' } });
    await stage.look();
    assert.deepEqual(stage.crd()?.spec, crdSpec);
    assert.deepEqual(stage.crd()?.metadata.finalizers, crd.metadata.finalizers);
    const { writes } = stage.consumer;
    assert.equal(writes.at(-1), `replace customresourcedefinitions ${crdName}`);
    await stage.look();
    stage.make();
    await stage.look();
    assert.deepEqual(stage.consumer.writes, writes);
    stage.consumer.drop(customResourceDefinitions, { name: crdName });
    await stage.look();
    assert.ok(stage.crd());
  });

  it('writes a CRD that the API server stores differently only once', async () => {
    await stage.bound();
    const crd = stage.crd();
    assert.ok(crd);
    // As with defaulting, the stored spec always differs from the written one.
    stage.consumer.put(customResourceDefinitions, { ...crd, spec: { ...crdSpec, preserveUnknownFields: false } });
    const { replace } = stage.consumer.client;
    stage.consumer.client.replace = (resource, object, options) =>
      replace(resource, { ...object, spec: { ...crdSpec, preserveUnknownFields: false } }, options);
    const before = stage.consumer.calls.length;
    for (let i = 0; i < 5; i++) await stage.look();
    assert.equal(stage.consumer.calls.slice(before).filter(({ verb }) => verb === 'replace').length, 1);
  });

  it('adopts a CRD that another konnector created for the binding', async () => {
    stage.establish();
    stage.bind();
    stage.offer();
    await stage.serve();
    assert.deepEqual(stage.consumer.writes, [
      'patch apiservicebindings kettles',
      'patch apiservicebindings/status kettles',
    ]);
    assert.equal(stage.said()['Ready']?.status, 'True');
  });

  it('reports a name that is taken, and a CRD that is being deleted', async () => {
    await stage.bound();
    const crd = stage.crd();
    assert.ok(crd);
    const taken = { type: 'NamesAccepted', status: 'False', reason: 'KindConflict', message: '"Kettle" is in use' };
    stage.consumer.put(customResourceDefinitions, { ...crd, status: { conditions: [taken] } });
    await stage.look();
    assert.equal(stage.said()['SchemaInSync']?.reason, 'CustomResourceDefinitionNamesNotAccepted');
    assert.match(stage.said()['SchemaInSync']?.message ?? '', /"Kettle" is in use/);
    await stage.consumer.client.delete(customResourceDefinitions, { name: crdName });
    await stage.look();
    assert.equal(stage.said()['SchemaInSync']?.reason, 'CustomResourceDefinitionTerminating');
  });

  it('reports that versions with a conversion webhook are not bound', async () => {
    stage.bind();
    stage.offer();
    const { spec } = boundSchemaManifest();
    const { versions, ...rest } = spec as { versions: object[] };
    const conversion = { strategy: 'Webhook', webhook: { clientConfig: { url: 'https://evil.example' } } };
    const two = [{ ...versions[0] }, { ...versions[0], name: 'v2', storage: false }];
    stage.provider.put(boundSchemas, boundSchemaManifest({ spec: { ...rest, versions: two, conversion } }));
    await stage.look();
    assert.ok(stage.events.some(({ reason, note }) => reason === 'ConversionNotBound' && note.includes('v1 only')));
  });
});
