import assert from 'node:assert/strict';
import { freePorts } from '../../../sandbox/ports.ts';
import { ScriptedComponent } from '../../support/inventory/scripted-component.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';

describe('an unreachable component', function () {
  this.timeout(180_000);
  let stage: InventoryStage;
  let component: ScriptedComponent | undefined;

  before(async () => {
    stage = await InventoryStage.open();
  });
  after(async () => {
    await stage?.close();
    component?.close();
  });

  it('is called for all waiting keys soon after it is back, without a change', async () => {
    const [port = 0] = await freePorts(1);
    await stage.register('network', `http://127.0.0.1:${port}`);
    const names = Array.from({ length: 8 }, (_, i) => `e${i}`);
    for (const name of names) await stage.entry(name);
    await stage.until('its breaker to be open', () => isBreaker(2));
    // The first five calls open the breaker, so most of the entries were never called.
    for (const name of names)
      await stage.until(`a status of ${name} that says so`, async () => {
        const [status] = (await stage.get(name)).components;
        return status?.state === 'Retrying' && status.reason === 'Unreachable';
      });
    component = await ScriptedComponent.start(() => ({ outcome: 'Done' }), { port });
    const began = performance.now();
    await stage.ready(...names);
    console.log(`      all is Ready ${(performance.now() - began).toFixed(0)} ms after it is back`);
    assert.ok(await isBreaker(0));
    const records = await stage.records();
    for (const { request } of component.calls) {
      const { history = [] } = records.find(({ entry }) => entry.uid === request.entry.id) ?? {};
      const failed = history.filter(({ reason }) => reason === 'Unreachable').length;
      assert.equal(request.run.attempt, failed, 'each call that failed before counts');
    }
  });

  /** 0 closed, 1 half open, 2 open. */
  const isBreaker = async (state: number): Promise<boolean> =>
    (await stage.server.metrics()).includes(`drawbridge_inventory_breaker_state{component="network"} ${state}`);
});
