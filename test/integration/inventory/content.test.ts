import assert from 'node:assert/strict';
import { InventoryStage } from '../../support/inventory/stage.ts';

describe('the content of an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('keeps unknown fields', async () => {
    const config = { deep: { er: [1, { y: 'ä' }] }, 'with/slash': true };
    await stage.component('novel', () => ({ outcome: 'Done', outputs: { novel: { made: config } } }));
    await stage.entry('one', { cluster: { any: { thing: 1 } }, components: { novel: { config, more: 'field' } } });
    await stage.ready('one');
    const { content } = await stage.get('one');
    assert.deepEqual((content.spec as { cluster: unknown }).cluster, { any: { thing: 1 } });
    assert.deepEqual((content.spec as { components: unknown }).components, {
      novel: { enabled: true, config, more: 'field' },
    });
    assert.deepEqual(content.status.outputs['novel'], { made: config });
  });
});
