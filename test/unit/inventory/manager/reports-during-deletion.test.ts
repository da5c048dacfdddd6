import assert from 'node:assert/strict';
import { answer } from '../../../support/inventory/in-memory-manager.ts';
import { stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import { pluck } from '../../../support/pluck.ts';

describe('the final report of a run whose entry is being deleted', () => {
  it('is accepted, and the component is called with delete immediately', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) =>
        operation === 'delete' ? answer({ outcome: 'Deleted' }) : { kind: 'accepted', heartbeatTimeoutMs: 3_600_000 },
    });
    const key = { entryUid: ref.uid, component: 'network' };
    const [call] = manager.calls;
    inventory.delete(ref);
    await clock.advance(1000);
    assert.equal(inventory.record(key)?.record.credentialId, undefined);
    assert.equal((await manager.report(call, { outcome: 'Done' }, 'm-9')).status, 403);
    // It may no longer send heartbeats.
    assert.equal((await manager.report(call, { heartbeat: {} })).status, 403);
    assert.equal((await manager.report(call, { outcome: 'Done' })).status, 200);
    await clock.advance(2000);
    assert.deepEqual(pluck(manager.calls, 'operation'), ['reconcile', 'delete']);
    assert.equal(inventory.entry(ref), undefined);
  });

  it('is accepted also while the entry is suspended, and the run may no longer write', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 3_600_000 }),
    });
    const key = { entryUid: ref.uid, component: 'network' };
    const [call] = manager.calls;
    inventory.setSpec(ref, { suspend: true });
    await clock.advance(1000);
    assert.equal(inventory.record(key)?.record.credentialId, 'm-1');
    inventory.delete(ref);
    await clock.advance(1000);
    assert.equal(inventory.record(key)?.record.credentialId, undefined);
    assert.equal((await manager.report(call, { heartbeat: {} })).status, 403);
    assert.equal((await manager.report(call, { outcome: 'Done' })).status, 200);
    assert.equal(inventory.record(key)?.record.heldBy, 'Suspended');
  });

  it('writes no outputs, and a heartbeat gets no token, even at the moment of the deletion', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network', maxRunSeconds: 36_000 }], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 3_600_000 }),
    });
    await clock.advance(360_000);
    inventory.delete(ref);
    assert.equal((await manager.report(manager.calls[0], { heartbeat: {} })).status, 403);
    const outcome = { outcome: 'Done', outputs: { network: { v: 1 } } };
    assert.equal((await manager.report(manager.calls[0], outcome)).status, 200);
    assert.deepEqual(inventory.entry(ref)?.content.status.outputs, {});
  });
});
