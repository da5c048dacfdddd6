import assert from 'node:assert/strict';
import { answer, type Behavior, done } from '../../../support/inventory/in-memory-manager.ts';
import type { RegistrationSeed } from '../../../support/inventory/memory-registrations.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import { pluck } from '../../../support/pluck.ts';

const network: RegistrationSeed = { name: 'network' };

describe('the inventory manager', () => {
  it('runs the components of a new entry and reports Ready', async () => {
    const { inventory, manager, ref } = await stageWithEntry([network], {
      network: () => done({ network: { vnetName: 'v' } }),
    });
    assert.equal(manager.calls.length, 1);
    assert.deepEqual(manager.calls[0]?.run.reasons, ['Created']);
    const entry = inventory.entry(ref);
    assert.deepEqual(entry?.content.status.outputs, { network: { vnetName: 'v' } });
    assert.deepEqual(pluck(entry?.components ?? [], 'name', 'state'), [['network', 'Done']]);
    assert.equal(entry?.conditions.find(({ type }) => type === 'Ready')?.status, 'True');
    assert.ok(entry?.finalizers.includes('inventory.drawbridge.dev/teardown'));
    const record = inventory.record({ entryUid: ref.uid, component: 'network' })?.record;
    assert.equal(record?.phase, 'Idle');
    assert.equal(record?.credentialId, undefined);
  });

  it('handles an entry with a large status', async () => {
    const missing = [{ path: '/spec/cluster/x', want: 'equals', value: 'x'.repeat(70_000) }] as const;
    const { clock, inventory, manager } = await memoryStage([network, { name: 'wordy' }], {
      wordy: () => answer({ outcome: 'NotReady', missing }),
    });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(2_000);
    inventory.setSpec(ref, { components: { network: { enabled: true, config: { a: 1 } } } });
    await clock.advance(2_000);
    assert.equal(manager.callsOf('network').length, 2);
    const states = inventory.entry(ref)?.components.map(({ name, state }) => [name, state]);
    assert.deepEqual(states, [
      ['network', 'Done'],
      ['wordy', 'NotReady'],
    ]);
  });

  it('names the field of spec.components that changed, and not one that has its default before and after', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'a' }]);
    for (const [a, reasons] of [
      [{ enabled: true }, ['ConfigChanged:/spec/components/a']],
      [{ enabled: true, config: { x: 1 } }, ['ConfigChanged:/spec/components/a/config']],
      [undefined, ['ConfigChanged:/spec/components/a/config']],
      [{ enabled: true, config: { x: 1 } }, ['ConfigChanged:/spec/components/a/config']],
    ] as const) {
      inventory.setSpec(ref, { components: a ? { a } : {} });
      await clock.advance(5000);
      assert.deepEqual(manager.calls.at(-1)?.run.reasons, reasons);
    }
    assert.equal(manager.calls.length, 5);
  });

  it('removes orphaned outputs that other components may wait for', async () => {
    let output = 'dns';
    const { clock, inventory, registrations, manager } = await memoryStage([network, { name: 'dns' }], {
      network: ({ operation }) => {
        if (operation === 'reconcile') return done({ network: { vnetName: 'v' } });
        const left = Object.keys(inventory.entry(ref)?.content.status.outputs ?? {}).filter((key) => key !== 'network');
        const [first, ...rest] = left.map((key) => ({ path: `/status/outputs/${key}`, want: 'absent' as const }));
        return answer(first ? { outcome: 'NotReady', missing: [first, ...rest] } : { outcome: 'Deleted' });
      },
      dns: ({ operation }) =>
        operation === 'reconcile' ? done({ [output]: { zone: 'z' } }) : answer({ outcome: 'Deleted' }),
    });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    output = 'names';
    registrations.put({ name: 'dns', writes: ['/status/outputs/names'] });
    await clock.advance(60_000);
    assert.deepEqual(Object.keys(inventory.entry(ref)?.content.status.outputs ?? {}).sort(), [
      'dns',
      'names',
      'network',
    ]);
    inventory.delete(ref);
    await clock.advance(2_000);
    assert.equal(inventory.entry(ref), undefined);
    assert.deepEqual(manager.withdrawn, [ref.uid]);
  });

  it('tears down an entry whose record was watched first', async () => {
    const teardown: Behavior = ({ operation }) => (operation === 'delete' ? answer({ outcome: 'Deleted' }) : done());
    const { clock, inventory, manager, replica, ref } = await stageWithEntry([network], { network: teardown });
    const next = replica();
    next.stores.pause();
    await manager.stop();
    inventory.delete(ref);
    next.start();
    next.stores.resume('records');
    await clock.advance(1_000);
    assert.equal(next.calls.length, 0);
    next.stores.resume();
    await clock.advance(1_000);
    assert.deepEqual(pluck(next.calls, 'operation'), ['delete']);
    assert.equal(inventory.entry(ref), undefined);
  });

  it('has no remote watches while it is not the leader', async () => {
    const watch = { cluster: 'managed', group: 'services.test', version: 'v1', resource: 'instances', fields: 'spec' };
    const { manager, ref } = await stageWithEntry([{ name: 'network', remoteWatches: [watch] }], {
      network: () => done(),
    });
    assert.deepEqual([...manager.remote.wanted.keys()], [ref.uid]);
    await manager.stop();
    assert.deepEqual([...manager.remote.wanted.keys()], []);
  });

  it('abandons a component that is no longer registered, also one that it never knew', async () => {
    const { clock, inventory, registrations, manager, replica, ref } = await stageWithEntry([network]);
    registrations.remove('network');
    await manager.stop();
    replica().start();
    await clock.advance(3000);
    assert.equal(inventory.records().length, 1);
    inventory.annotate(ref, {
      'abandon.inventory.drawbridge.dev/network': 'lost',
      'abandoned-by.inventory.drawbridge.dev/network': 'alice',
    });
    await clock.advance(3000);
    assert.deepEqual(inventory.records(), []);
    assert.deepEqual(inventory.entry(ref)?.components, []);
  });

  it('stores once that a due run waits for a dead endpoint, and once that an entry is suspended', async () => {
    let isDown = false;
    const { clock, inventory } = await memoryStage([{ ...network, intervalSeconds: 600 }], {
      network: () => (isDown ? { kind: 'notAccepted', code: 'Unreachable', message: 'refused' } : done()),
    });
    const { ref } = inventory.create({ name: 'waits' });
    await clock.advance(5_000);
    isDown = true;
    for (let i = 0; i < 10; i++) inventory.create({ name: `e${i}` });
    const seen: (string | undefined)[] = [];
    inventory.onRecord = (key, now) => {
      if (key.startsWith(ref.uid)) seen.push(now?.heldBy ? `held: ${now.heldBy}` : now?.phase);
    };
    await clock.advance(400_000);
    assert.deepEqual(seen, []);
    await clock.advance(280_000);
    assert.equal(seen[0], 'held: Unreachable');
    isDown = false;
    await clock.advance(60_000);
    assert.deepEqual(seen.slice(-2), ['Running', 'Idle']);
    seen.length = 0;
    for (const suspend of [true, false]) {
      inventory.setSpec(ref, { suspend });
      await clock.advance(5_000);
    }
    assert.deepEqual(seen, ['held: Suspended', 'Idle']);
  });

  it('says for each component of a suspended entry that is being deleted what keeps its teardown from starting', async () => {
    const failed = { kind: 'outcome', outcome: { outcome: 'Failed', message: 'no such region' } } as const;
    const { clock, inventory } = await memoryStage([{ name: 'a' }, { name: 'b' }], { b: () => failed });
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(5000);
    inventory.setSpec(ref, { suspend: true });
    await clock.advance(5000);
    inventory.delete(ref);
    await clock.advance(5000);
    const text =
      'the entry is being deleted, but spec.suspend is true: the server starts no teardown; set it to false to tear the component down';
    assert.deepEqual(
      inventory.entry(ref)?.components.map(({ name, state, reason, message }) => [name, state, reason, message]),
      [
        ['a', 'Suspended', 'Suspended', text],
        ['b', 'Suspended', 'Suspended', `${text}; last outcome: Failed: no such region`],
      ],
    );
  });

  it('accepts reports of an asynchronous run', async () => {
    const { clock, inventory, manager } = await stageWithEntry([network], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 30_000 }),
    });
    const [call] = manager.calls;
    assert.equal((await manager.report(call, { heartbeat: {} })).status, 200);
    await clock.advance(40_000);
    assert.equal(manager.calls.length, 1);
    for (let i = 0; i < 2; i++) assert.equal((await manager.report(call, { outcome: 'Done' })).status, 200);
    const differs = await manager.report(call, { outcome: 'Failed' });
    assert.equal(differs.status === 409 && differs.code, 'OutcomeDiffers');
    assert.deepEqual(
      manager.warnings.filter((message) => message.includes('report of a finished run')),
      ['report of a finished run ignored; it differs from the outcome that ended the run'],
    );
    assert.equal(inventory.records()[0]?.record.lastOutcome?.outcome, 'Done');
  });

  it('dispatches nothing before write authorization is proved', async () => {
    const { clock, inventory, manager } = await memoryStage([network]);
    manager.proved = false;
    inventory.create({ name: 'one' });
    await clock.advance(10_000);
    assert.equal(manager.calls.length, 0);
  });
});
