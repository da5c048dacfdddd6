import assert from 'node:assert/strict';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { answer, done, notReady } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import type { StoreOperation } from '../../../support/inventory/memory-stores.ts';
import { pluck } from '../../../support/pluck.ts';

const region = '/spec/cluster/region';

type Stage = Awaited<ReturnType<typeof memoryStage>>;

/** The answer of the nth such operation from now on is lost. */
function loseAnswer({ inventory }: Pick<Stage, 'inventory'>, operation: StoreOperation, nth: number): void {
  let count = 0;
  inventory.fault = (asked, when) =>
    asked === operation && when === 'after' && ++count === nth
      ? new TransportError('lost', undefined, false)
      : undefined;
}

const runsOf = async ({ manager }: Stage) => [...(await manager.metric('drawbridge_inventory_runs_total')).entries()];

describe('the lost answer of a write', () => {
  it('of a start delays the call of its component by seconds, and causes no second run', async () => {
    const stage = await stageWithEntry([{ name: 'network', reads: [region], timeoutSeconds: 30 }]);
    const { clock, inventory, manager, ref } = stage;
    loseAnswer(stage, 'run.swap', 1);
    inventory.setSpec(ref, { cluster: { region: 'a' } });
    await clock.advance(2000);
    assert.deepEqual([manager.calls.length, inventory.records()[0]?.record.lastOutcome?.outcome], [2, 'Done']);
    await clock.advance(60_000);
    assert.equal(manager.calls.length, 2);
  });

  it('of a start that was not stored keeps no slot, if its entry is then suspended', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([
      { name: 'network', maxConcurrent: 1, reads: [region] },
    ]);
    inventory.fault = (asked, when) =>
      asked === 'run.swap' && when === 'before' ? new TransportError('lost', undefined, false) : undefined;
    inventory.setSpec(ref, { cluster: { region: 'a' } });
    await clock.advance(10);
    inventory.setSpec(ref, { suspend: true });
    inventory.fault = () => undefined;
    await clock.advance(5000);
    const { ref: other } = inventory.create({ name: 'two' });
    await clock.advance(1000);
    assert.equal(manager.calls.at(-1)?.entry.id, other.uid);
  });

  it('of an end leaves one line of the run in metrics and Events', async () => {
    const stage = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Failed', message: 'x' }),
    });
    loseAnswer(stage, 'run.swap', 2);
    stage.inventory.create({ name: 'one' });
    await stage.clock.advance(10_000);
    assert.deepEqual(await runsOf(stage), [['{component="network",outcome="Failed",reason="Created"}', 1]]);
    assert.deepEqual(pluck(stage.manager.recorded, 'reason'), ['Failed']);
  });

  it('of a removal leaves one line of the teardown in metrics', async () => {
    const stage = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) => (operation === 'delete' ? answer({ outcome: 'Deleted' }) : done()),
    });
    loseAnswer(stage, 'run.remove', 1);
    stage.inventory.delete(stage.ref);
    await stage.clock.advance(60_000);
    assert.deepEqual((await runsOf(stage)).at(-1), ['{component="network",outcome="Deleted",reason="Deleting"}', 1]);
  });
});

describe('a failed step', () => {
  it('is repeated with backoff, however often its inputs change', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network', reads: [region] }]);
    let tries = 0;
    manager.issuing = () => {
      tries += 1;
      throw new ApiError(503, 'ServiceUnavailable', 'later');
    };
    for (let i = 0; i < 600; i += 1) {
      inventory.setSpec(ref, { cluster: { region: `${i}` } });
      await clock.advance(100);
    }
    assert.ok(tries >= 4 && tries <= 20, `${tries} tries in a minute`);
  });

  it('of a start does not lose that an awaited input arrived', async () => {
    let answers = 0;
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', intervalSeconds: 86_400 }], {
      network: () => (answers++ === 0 ? notReady(region) : done()),
    });
    const { ref } = inventory.create({ name: 'one', spec: { cluster: { region: 'a' } } });
    await clock.advance(2000);
    assert.equal(inventory.records()[0]?.record.lastOutcome?.reason, 'MissingAlreadySatisfied');
    inventory.setSpec(ref, { cluster: {} });
    await clock.advance(2000);
    let failures = 1;
    manager.issuing = () => {
      if (failures-- > 0) throw new ApiError(500, 'InternalError', 'x');
    };
    inventory.setSpec(ref, { cluster: { region: 'b' } });
    await clock.advance(2000);
    assert.deepEqual(manager.calls.at(-1)?.run.reasons, [`InputArrived:${region}`]);
  });

  it('shows in the status if the record is refused before outputs are written', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network' }], {
      network: () => done({ network: { v: 1 } }),
    });
    let swaps = 0;
    inventory.fault = (operation, when) =>
      operation === 'run.swap' && when === 'before' && ++swaps > 1 ? new ApiError(422, 'Invalid', 'x') : undefined;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(60_000);
    assert.equal(inventory.entry(ref)?.components[0]?.reason, 'NotStored');
  });
});

it('the latency of a change does not count a change that was taken back', async () => {
  const { clock, inventory, manager, ref } = await stageWithEntry([
    { name: 'network', reads: [region], intervalSeconds: 86_400 },
  ]);
  inventory.setSpec(ref, { cluster: { region: 'a' } });
  await clock.advance(10);
  inventory.setSpec(ref, { cluster: { region: 'b' } });
  await clock.advance(10);
  inventory.setSpec(ref, { cluster: { region: 'a' } });
  await clock.advance(3_600_000);
  inventory.setSpec(ref, { cluster: { region: 'c' } });
  await clock.advance(1000);
  const sums = [...(await manager.metric('drawbridge_inventory_trigger_latency_seconds_sum')).values()];
  assert.ok(
    sums.every((seconds) => seconds < 1),
    sums.join(),
  );
});
