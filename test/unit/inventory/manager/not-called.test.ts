import assert from 'node:assert/strict';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('a component that the server cannot call', () => {
  it('is called after the server recovers, and no breaker opens', async () => {
    let away = true;
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }], {
      network: () => (away ? { kind: 'notCalled', message: 'the API server is away' } : done()),
    });
    for (let i = 0; i < 30; i++) inventory.create({ name: `e${i}` });
    await clock.advance(20_000);
    const breakers = await manager.metric('drawbridge_inventory_breaker_state');
    assert.notEqual(breakers.get('{component="network"}'), 2);
    assert.ok(manager.calls.length < 30 * 12, `${manager.calls.length} tries`);
    away = false;
    await clock.advance(31_000);
    const records = inventory.records().map(({ record }) => record);
    assert.equal(records.filter(({ lastOutcome }) => lastOutcome?.outcome === 'Done').length, 30);
    assert.ok(records.every(({ attempt }) => attempt === 0));
  });
});
