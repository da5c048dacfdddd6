import assert from 'node:assert/strict';
import { apiServiceBindings, unbindPolicyAnnotation } from '../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { conditionsOf, crdName, kettles } from '../../support/binding/memory-stage.ts';
import { loadYamlOnce } from '../../support/binding/session-stage.ts';
import { blue, copyOfBlue, WholeKonnector } from '../../support/binding/whole-konnector.ts';

describe('the whole konnector', () => {
  let whole: WholeKonnector;
  before(loadYamlOnce);
  beforeEach(async () => {
    whole = new WholeKonnector();
    whole.start();
    whole.bind();
    await whole.until('the binding is ready', () => conditionsOf(binding())['Ready']?.status === 'True');
  });
  afterEach(() => whole.stop());

  const binding = () => whole.consumer.find(apiServiceBindings, { name: 'kettles' });
  const copy = () => whole.provider.find(kettles, copyOfBlue);

  it('binds, and syncs an object and its status', async () => {
    whole.kettle({ litres: 1 });
    await whole.until('the copy is there', () => copy() !== undefined);
    assert.deepEqual(copy()?.spec, { litres: 1 });
    const made = copy();
    assert.ok(made);
    whole.provider.put(kettles, { ...made, status: { hot: true } });
    await whole.settle();
    assert.deepEqual(whole.consumer.find(kettles, blue)?.status, { hot: true });
    const writes = [whole.consumer.writes.length, whole.provider.writes.length];
    await whole.settle(60_000);
    assert.deepEqual([whole.consumer.writes.length, whole.provider.writes.length], writes);
  });

  for (const policy of ['Delete', 'Orphan']) {
    it(`unbinds with policy ${policy} and leaves nothing in the consumer`, async () => {
      whole.kettle({ litres: 1 });
      await whole.until('the copy is there', () => copy() !== undefined);
      whole.bind({ ...binding()?.metadata, annotations: { [unbindPolicyAnnotation]: policy } });
      await whole.consumer.client.delete(apiServiceBindings, { name: 'kettles' });
      await whole.until('the binding is gone', () => binding() === undefined);
      assert.equal(whole.consumer.find(customResourceDefinitions, { name: crdName }), undefined);
      assert.deepEqual(whole.consumer.list(kettles), []);
      assert.equal(copy() !== undefined, policy === 'Orphan');
    });
  }
});
