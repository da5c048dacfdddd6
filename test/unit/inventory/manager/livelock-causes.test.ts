import assert from 'node:assert/strict';
import { stageWithEntry } from '../../../support/inventory/memory-stage.ts';

const region = '/spec/cluster/region';

describe('the causes of a livelock', () => {
  it('do not include the watched objects whose changes arrived with the inputs', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network', reads: [region] }]);
    for (let n = 0; n < 60; n++) {
      inventory.setSpec(ref, { cluster: { region: n % 2 === 0 ? 'a' : 'b' } });
      manager.remote.event({ entryUid: ref.uid, component: 'network', detail: 'managed/services.test' });
      await clock.advance(1000);
    }
    assert.ok(manager.calls.some(({ run }) => run.reasons.length === 2));
    const message = inventory.entry(ref)?.conditions.find(({ type }) => type === 'Livelock')?.message ?? '';
    assert.match(message, /; changes of \/spec\/cluster\/region started the last of them; /);
  });
});
