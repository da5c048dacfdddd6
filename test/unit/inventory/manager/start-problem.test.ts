import assert from 'node:assert/strict';
import { CodedError } from '../../../../src/kit/errors.ts';
import { done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('a run that the server cannot start', () => {
  const withProblem = async (problem: () => Error) => {
    const stage = await memoryStage([{ name: 'network' }], { network: () => done() });
    let isBroken = true;
    stage.manager.issuing = () => {
      if (isBroken) throw problem();
    };
    const { ref } = stage.inventory.create({ name: 'one' });
    const repair = (): void => {
      isBroken = false;
    };
    return { ...stage, ref, repair, row: () => stage.inventory.entry(ref)?.components[0] };
  };

  it('shows why in the entry, until it starts', async () => {
    const { clock, inventory, ref, repair, row } = await withProblem(
      () => new CodedError('NameTaken', 'Role a exists; delete it: kubectl delete role a -n inv'),
    );
    await clock.advance(60_000);
    assert.deepEqual(
      [row()?.state, row()?.reason, row()?.message],
      ['Retrying', 'NameTaken', 'Role a exists; delete it: kubectl delete role a -n inv'],
    );
    const { resourceVersion } = inventory.entry(ref) ?? {};
    await clock.advance(600_000);
    assert.equal(inventory.entry(ref)?.resourceVersion, resourceVersion, 'it is written once');
    repair();
    await clock.advance(60_000);
    assert.deepEqual([row()?.state, row()?.reason, row()?.message], ['Done', undefined, undefined]);
  });

  it('shows no longer why once the entry is suspended', async () => {
    const { clock, inventory, ref, row } = await withProblem(() => new CodedError('NameTaken', 'taken'));
    await clock.advance(5_000);
    assert.equal(row()?.reason, 'NameTaken');
    inventory.setSpec(ref, { suspend: true });
    await clock.advance(60_000);
    assert.equal(row()?.reason, 'Suspended');
  });
});
