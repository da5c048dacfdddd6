import assert from 'node:assert/strict';
import { stageWithEntry } from '../../../support/inventory/memory-stage.ts';

const region = '/spec/cluster/region';

describe('the condition Livelock', () => {
  it('names the path while inputs keep returning, and clears once they settle', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([
      { name: 'network', reads: [region] },
      { name: 'other' },
    ]);
    const livelock = () => inventory.entry(ref)?.conditions.find(({ type }) => type === 'Livelock');
    const set = async (value: string): Promise<void> => {
      inventory.setSpec(ref, { cluster: { region: value } });
      await clock.advance(1_000);
    };
    for (let n = 0; n < 10; n++) await set(n % 2 === 0 ? 'a' : 'b');
    assert.equal(livelock(), undefined);
    for (let n = 0; n < 110; n++) await set(n % 2 === 0 ? 'a' : 'b');
    assert.equal(livelock()?.status, 'True');
    assert.match(livelock()?.message ?? '', /^network: .*\/spec\/cluster\/region/);
    assert.ok(manager.callsOf('network').length < 40, `${manager.callsOf('network').length} runs`);
    assert.equal(manager.callsOf('other').length, 1);
    await clock.advance(30 * 60_000);
    await set('c');
    assert.equal(livelock()?.status, 'False');
    assert.equal(manager.callsOf('network').at(-1)?.run.reasons[0], `ConfigChanged:${region}`);
  });
});
