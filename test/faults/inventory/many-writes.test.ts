import assert from 'node:assert/strict';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { writesOfUnreadField } from '../../support/inventory/consolidation.ts';
import { report } from '../../support/inventory/run-report.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { outputsIn, patchStatus } from '../../support/inventory/status-patch.ts';

describe('an entry under load', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('loses none of 1,000 concurrent patches by two components, without conflicts', async () => {
    const rounds = 500;
    const names = ['left', 'right'];
    const runs = new Map<string, ReconcileRequest>();
    for (const name of names) {
      const goesOn = (run: ReconcileRequest) => {
        runs.set(name, run);
        return { status: 202, body: { leaseSeconds: 120 } };
      };
      await stage.component(name, goesOn);
    }
    await stage.entry('one');
    await stage.until('both to be called', () => runs.size === names.length);
    const began = performance.now();
    const patchAll = async ([name, run]: [string, ReconcileRequest]): Promise<void> => {
      for (let i = 1; i <= rounds; i++) {
        const { status, body } = await patchStatus(run, { status: { outputs: { [name]: { count: i } } } });
        assert.equal(status, 200, `${name} ${i}: ${body}`);
        assert.equal(outputsIn(body)?.[name]?.count, i, 'it reads what it wrote');
      }
    };
    await Promise.all([...runs].map(patchAll));
    console.log(`      1,000 patches: ${(performance.now() - began).toFixed(0)} ms`);
    const { content } = await stage.get('one');
    assert.deepEqual(content.status.outputs, { left: { count: rounds }, right: { count: rounds } });
    assert.deepEqual(
      (await stage.records()).map(({ seq, phase }) => [seq, phase]),
      names.map(() => [1, 'Running']),
      'own writes trigger nothing',
    );
    for (const run of runs.values()) assert.equal(await report(run, { outcome: 'Done' }), 200);
    await stage.ready('one');
  });

  it('triggers no component that reads nothing of it, despite a thousand writes', async () => {
    assert.equal(await writesOfUnreadField(stage, 1000), 0);
  });
});
