import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const secret = 'c0ntent-of-the-report';

describe('reports that violate the contract', () => {
  /** An asynchronous run. `writes`: the messages of its component in later writes of the entry. */
  async function longRun() {
    const registered = { name: 'network', leaseSeconds: 3600, maxRunSeconds: 3600 };
    const stage = await memoryStage([registered], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: undefined }),
    });
    const { clock, inventory } = stage;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    const writes: (string | undefined)[] = [];
    inventory.onEntry = (now, before) => {
      if (!isDeepStrictEqual([now.components, now.conditions], [before?.components, before?.conditions]))
        writes.push(now.components[0]?.message);
    };
    const run = { entryUid: ref.uid, component: 'network', seq: 1 };
    const { reports } = stage.manager.manager;
    const report = (body: object, credential?: string) =>
      stage.manager.report(stage.manager.calls[0], body, credential);
    return { ...stage, ref, run, reports, report, writes };
  }

  const counted = (of: InMemoryManager) => of.metric('drawbridge_inventory_reports_rejected_total');

  it('cost one write of the status and one Event, whatever their number, and are shown without their content', async () => {
    const { clock, inventory, manager, ref, reports, run, report, writes } = await longRun();
    for (let i = 0; i < 50; i += 1) {
      const { status, ...said } = await report({ outcome: secret, [secret]: secret });
      assert.equal(status, 400);
      assert.ok('code' in said && said.code === 'InvalidReport');
      await reports.rejected(run, 'm-1', 'TooLarge');
      await clock.advance(1000);
    }
    assert.equal(writes.length, 1);
    assert.match(writes[0] ?? '', /; report rejected \(InvalidReport\) at \S+Z, see the log of the component$/);
    assert.deepEqual(
      manager.recorded.map(({ type, reason, note }) => [type, reason, note]),
      [
        [
          'Warning',
          'ReportRejected',
          'network: the server rejected a report of the component (InvalidReport); the HTTP answer to the component has the cause: check the log of the component',
        ],
      ],
    );
    assert.equal(manager.warnings.filter((text) => text.includes('rejected a report')).length, 1);
    assert.deepEqual(
      [...(await counted(manager))],
      [
        ['{component="network",code="InvalidReport"}', 50],
        ['{component="network",code="TooLarge"}', 50],
      ],
    );
    const shown = JSON.stringify([inventory.entry(ref)?.components, manager.warnings, writes]);
    assert.ok(!shown.includes(secret));
  });

  it('leave no trace with a token of another run', async () => {
    const { clock, manager, reports, run, report, writes } = await longRun();
    await report({ outcome: secret }, 'm-9');
    await reports.rejected(run, 'm-9', 'TooLarge');
    await reports.rejected({ ...run, seq: 2 }, 'm-1', 'TooLarge');
    await reports.rejected({ ...run, component: 'none' }, 'm-1', 'TooLarge');
    await clock.advance(1000);
    assert.deepEqual([writes, manager.recorded, (await counted(manager)).size], [[], [], 0]);
  });
});
