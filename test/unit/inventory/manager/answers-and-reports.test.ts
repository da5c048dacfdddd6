import assert from 'node:assert/strict';
import type { ReconcileRequest } from '../../../../src/api/inventory/contract/request.ts';
import type { CallFailureCode, Reply } from '../../../../src/inventory/ports.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { answer, credentialOf, done, type InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import type { MemoryInventory } from '../../../support/inventory/memory-stores.ts';

/** Duration of the failing call, milliseconds. */
const callMs = 1000;

const rowOf = (inventory: MemoryInventory, component: string) => {
  const row = inventory.entry({ name: 'one' })?.components.find(({ name }) => name === component);
  return row && [row.state, row.reason];
};

const unusable = (code: CallFailureCode): Reply => ({ kind: 'failed', code, message: 'of the fault' });
const retried = (code: string) => ({ row: ['Retrying', code], run: `outcome="Retry",reason="${code}"` });
const failed = (code: string) => ({ row: ['Failed', code], run: `outcome="Failed",reason="${code}"` });

const verdicts: Readonly<Record<string, { readonly reply: Reply; readonly row: unknown; readonly run: string }>> = {
  'that is not JSON': { reply: unusable('NotJson'), ...retried('NotJson') },
  'that rejects the server': { reply: unusable('Refused'), ...retried('Refused') },
  'with an outcome of another operation': { reply: answer({ outcome: 'Deleted' }), ...retried('InvalidOutcome') },
  'with outputs of another component': { reply: done({ other: { is: 'mine' } }), ...failed('ForeignPath') },
  'that removes outputs of another component': { reply: done({ other: null }), ...failed('ForeignPath') },
};

describe('an answer', () => {
  async function stage(reply: Reply) {
    let faulty = true;
    const staged = await memoryStage([{ name: 'network' }, { name: 'other' }], {
      network: async (_request, signal) => {
        if (!faulty) return done({ network: { vnet: 'v' } });
        faulty = false;
        await sleep(staged.clock, callMs, signal);
        return reply;
      },
      other: () => done({ other: { is: 'its own' } }),
    });
    staged.inventory.create({ name: 'one' });
    await staged.clock.advance(callMs / 2);
    return staged;
  }

  for (const [what, { reply, row, run }] of Object.entries(verdicts)) {
    it(`${what} counts once, shows in the status, affects no other component, and is followed by a successful run`, async () => {
      const { clock, inventory, manager } = await stage(reply);
      await clock.advance(callMs / 2 + 1);
      const runs = async () => [...(await manager.metric('drawbridge_inventory_runs_total'))].sort();
      assert.deepEqual(await runs(), [
        [`{component="network",${run}}`, 1],
        ['{component="other",outcome="Done",reason="Created"}', 1],
      ]);
      await clock.advance(300);
      assert.deepEqual(rowOf(inventory, 'network'), row);
      assert.deepEqual(rowOf(inventory, 'other'), ['Done', undefined]);
      assert.deepEqual(inventory.entry({ name: 'one' })?.content.status.outputs, { other: { is: 'its own' } });
      const { phase, credentialId } =
        inventory.records().find(({ record }) => record.component === 'network')?.record ?? {};
      assert.deepEqual([phase, credentialId], ['Idle', undefined]);
      await clock.advance(2 * 3_600_000);
      assert.deepEqual(rowOf(inventory, 'network'), ['Done', undefined]);
      assert.equal(manager.callsOf('other').length > 0 && rowOf(inventory, 'other')?.[0], 'Done');
    });

    it(`${what} does not hide an earlier change`, async () => {
      const { clock, inventory, manager } = await stage(reply);
      inventory.setSpec({ name: 'one' }, { components: { network: { enabled: true, config: { size: 1 } } } });
      await clock.advance(callMs / 2 + 600);
      assert.deepEqual(
        manager.callsOf('network').map(({ run: { reasons, attempt } }) => [reasons, attempt]),
        [
          [['Created'], 0],
          [['ConfigChanged:/spec/components/network/config'], 0],
        ],
      );
      assert.deepEqual(rowOf(inventory, 'network'), ['Done', undefined]);
    });
  }
});

describe('a report', () => {
  async function stage() {
    const staged = await memoryStage([{ name: 'network', intervalSeconds: 86_400 }, { name: 'other' }], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: 30_000 }),
    });
    staged.inventory.create({ name: 'one' });
    await staged.clock.advance(1);
    const first = staged.manager.callsOf('network')[0] as ReconcileRequest;
    return { ...staged, first };
  }
  const report = async (manager: InMemoryManager, ...sent: Parameters<InMemoryManager['report']>) => {
    const reportAnswer = await manager.report(...sent);
    return [reportAnswer.status, 'code' in reportAnswer ? reportAnswer.code : undefined];
  };
  const runs = async (of: InMemoryManager) =>
    [...(await of.metric('drawbridge_inventory_runs_total'))].filter(([labels]) => labels.includes('network'));

  const refusals: Readonly<Record<string, [body: object, credential: string | undefined, reportAnswer: unknown]>> = {
    'without an outcome': [{}, undefined, [400, 'InvalidReport']],
    'with an unknown outcome': [{ outcome: 'Perfect' }, undefined, [400, 'InvalidReport']],
    'with an outcome of another operation': [{ outcome: 'Deleted' }, undefined, [400, 'InvalidReport']],
    'about another run': [{ run: 'x.network.1', outcome: 'Done' }, undefined, [400, 'InvalidReport']],
    'with both an outcome and a heartbeat': [{ outcome: 'Done', heartbeat: {} }, undefined, [400, 'InvalidReport']],
    'by another credential': [{ outcome: 'Done' }, 'forged', [403, 'ForeignCredential']],
  };
  for (const [what, [body, credential, reportAnswer]] of Object.entries(refusals)) {
    it(`${what} is rejected, and the run continues until a valid report`, async () => {
      const { clock, inventory, manager, first } = await stage();
      assert.deepEqual(await report(manager, first, body, credential), reportAnswer);
      await clock.advance(1000);
      assert.deepEqual(await runs(manager), []);
      assert.deepEqual(rowOf(inventory, 'other'), ['Done', undefined]);
      assert.deepEqual(await report(manager, first, { outcome: 'Done' }), [200, undefined]);
      await clock.advance(1000);
      assert.deepEqual(rowOf(inventory, 'network'), ['Done', undefined]);
      assert.deepEqual(await runs(manager), [['{component="network",outcome="Done",reason="Created"}', 1]]);
    });
  }

  it('that is too late is rejected, and does not affect the next run', async () => {
    const { clock, inventory, manager, first } = await stage();
    await clock.advance(35_000);
    assert.deepEqual(await runs(manager), [['{component="network",outcome="Retry",reason="LeaseOver"}', 1]]);
    const second = manager.callsOf('network')[1];
    assert.ok(second);
    assert.deepEqual(await report(manager, first, { outcome: 'Failed' }), [409, 'RunOver']);
    const foreign = await report(manager, second, { outcome: 'Done' }, credentialOf(first));
    assert.deepEqual(foreign, [403, 'ForeignCredential']);
    assert.deepEqual(await report(manager, second, { outcome: 'Done' }), [200, undefined]);
    await clock.advance(1000);
    assert.deepEqual(rowOf(inventory, 'network'), ['Done', undefined]);
    assert.equal(
      (await runs(manager)).reduce((sum, [, count]) => sum + count, 0),
      2,
    );
  });

  it('with outputs of another component ends the run and publishes nothing', async () => {
    const { clock, inventory, manager, first } = await stage();
    const body = { outcome: 'Done', outputs: { network: { vnet: 'v' }, other: { is: 'mine' } } };
    for (const what of ['report', 'repeated report']) {
      const { status, ...rest } = await manager.report(first, body);
      assert.equal(status, 200, what);
      assert.match(
        JSON.stringify(rest),
        /"rejection":\{"code":"ForeignPath","message":".*\/status\/outputs\/other/,
        what,
      );
      await clock.advance(1000);
    }
    assert.deepEqual(rowOf(inventory, 'network'), ['Failed', 'ForeignPath']);
    assert.deepEqual(inventory.entry({ name: 'one' })?.content.status.outputs, {});
    assert.deepEqual(await runs(manager), [['{component="network",outcome="Failed",reason="ForeignPath"}', 1]]);
  });
});

describe('the metrics of runs', () => {
  const readerOf =
    (manager: InMemoryManager) =>
    async (name: string, labels = '') =>
      (await manager.metric(`drawbridge_inventory_${name}`)).get(labels);

  it('count every trigger, and the number and waiting time of queued keys', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network', maxConcurrent: 1 }], {
      network: (_request, signal) => sleep(clock, 2000, signal).then(() => done()),
    });
    for (let i = 0; i < 5; i++) inventory.create({ name: `e${i}` });
    await clock.advance(1000);
    const value = readerOf(manager);
    assert.equal(await value('triggers_total', '{component="network",reason="Created"}'), 5);
    assert.equal(await value('queue_depth', '{lane="manual"}'), 4);
    const oldest = await value('oldest_queued_seconds');
    assert.ok(oldest !== undefined && oldest >= 0.9 && oldest <= 1, `${oldest} s`);
    await clock.advance(10_000);
    assert.equal(await value('queue_depth', '{lane="manual"}'), 0);
    assert.equal(await value('oldest_queued_seconds'), 0);
  });

  it('count runs that wait for a slot after their interval', async () => {
    let callMs = 0;
    const { clock, inventory, manager } = await memoryStage(
      [{ name: 'network', maxConcurrent: 1, intervalSeconds: 60, timeoutSeconds: 30 }],
      { network: (_request, signal) => sleep(clock, callMs, signal).then(() => done()) },
    );
    for (let i = 0; i < 3; i++) inventory.create({ name: `e${i}` });
    await clock.advance(40_000);
    const value = readerOf(manager);
    assert.equal(await value('queue_depth', '{lane="time"}'), 0);
    callMs = 25_000;
    await clock.advance(30_000);
    assert.equal(manager.calls.length, 4);
    assert.equal(await value('queue_depth', '{lane="time"}'), 2);
    assert.ok(((await value('oldest_queued_seconds')) ?? 0) > 1);
  });

  it('count no conflict while the API server is unavailable', async () => {
    const { clock, inventory, manager } = await memoryStage([{ name: 'network' }]);
    manager.issuing = () => {
      throw new ApiError(503, 'ServiceUnavailable', 'away');
    };
    inventory.create({ name: 'one' });
    await clock.advance(60_000);
    assert.equal(manager.calls.length, 0);
    assert.equal((await manager.metric('drawbridge_inventory_cas_conflicts_total')).get(''), 0);
    assert.deepEqual(rowOf(inventory, 'network'), ['Progressing', 'Pending']);
    manager.issuing = () => {};
    await clock.advance(31_000);
    assert.deepEqual(rowOf(inventory, 'network'), ['Done', undefined]);
  });

  it('count a lost compare-and-swap, and only one of two servers calls', async () => {
    const { clock, inventory, manager, replica, ref } = await stageWithEntry([{ name: 'network' }]);
    // The first server is paused during the takeover, so it does not notice the loss of its leadership.
    manager.stores.pause();
    const next = replica({}, 'n').start();
    await clock.advance(1000);
    inventory.setSpec(ref, { components: { network: { enabled: true, config: { size: 1 } } } });
    await clock.advance(1000);
    assert.deepEqual([manager.calls.length, next.calls.length], [1, 1]);
    manager.remote.event({ entryUid: ref.uid, component: 'network', detail: 'managed/things' });
    await clock.advance(1);
    assert.equal((await manager.metric('drawbridge_inventory_cas_conflicts_total')).get(''), 1);
    assert.equal((await next.metric('drawbridge_inventory_cas_conflicts_total')).get(''), 0);
  });
});
