import assert from 'node:assert/strict';
import type { ReportAnswer } from '../../../../src/inventory/ports.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { answer } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage, stageWithEntry } from '../../../support/inventory/memory-stage.ts';
import { pluck } from '../../../support/pluck.ts';

const minute = 60_000;
const refusal = new ApiError(403, 'Forbidden', 'a right is missing');

describe('a report whose record the API server rejects', () => {
  /** An asynchronous run, and an API server that can reject writes. */
  async function longRun() {
    const registered = { name: 'network', intervalSeconds: 86_400, leaseSeconds: 3600, maxRunSeconds: 36_000 };
    const stage = await memoryStage([registered], {
      network: () => ({ kind: 'accepted', heartbeatTimeoutMs: undefined }),
    });
    const { clock, inventory } = stage;
    const { ref } = inventory.create({ name: 'one' });
    await clock.advance(1000);
    const key = { entryUid: ref.uid, component: 'network' };
    let refused = false;
    inventory.fault = (operation, when) =>
      refused && operation.startsWith('run.') && when === 'before' ? refusal : undefined;
    return {
      ...stage,
      ref,
      record: () => inventory.record(key)?.record,
      refuse: (now: boolean) => {
        refused = now;
      },
      async report(credential: string, body: object): Promise<ReportAnswer> {
        const answered = stage.manager.report(stage.manager.calls[0], body, credential);
        await clock.advance(20_000);
        return answered;
      },
    };
  }

  it('is answered 503 until its outcome is stored, then 200', async () => {
    const { clock, record, refuse, report } = await longRun();
    refuse(true);
    for (let i = 0; i < 3; i++) {
      assert.equal((await report('m-1', { outcome: 'Done' })).status, 503);
      assert.equal(record()?.phase, 'Running');
    }
    assert.equal((await report('m-9', { outcome: 'Done' })).status, 403);
    refuse(false);
    await clock.advance(5 * minute);
    assert.equal(record()?.lastOutcome?.outcome, 'Done');
    assert.equal(record()?.credentialId, undefined);
    assert.equal((await report('m-1', { outcome: 'Done' })).status, 200);
  });

  it('is answered 503 before outputs are written, and 200 after', async () => {
    const { clock, inventory, ref, record, refuse, report } = await longRun();
    const body = { outcome: 'Done', outputs: { network: { vnetName: 'v' } } };
    refuse(true);
    assert.equal((await report('m-1', body)).status, 503);
    assert.equal(record()?.phase, 'Running');
    refuse(false);
    await clock.advance(5 * minute);
    assert.equal(record()?.phase, 'Idle');
    assert.deepEqual(inventory.entry(ref)?.content.status.outputs, { network: { vnetName: 'v' } });
    assert.equal((await report('m-1', body)).status, 200);
  });

  it('is answered 503 until its outputs are written or refused, then 200 with the rejection', async () => {
    const { clock, inventory, report } = await longRun();
    const body = { outcome: 'Done', outputs: { network: { vnetName: 'v' } } };
    inventory.fault = (operation, when) => (operation === 'entry.patch' && when === 'before' ? refusal : undefined);
    const answers = await Promise.all([report('m-1', body), report('m-1', body)]);
    assert.deepEqual(pluck(answers, 'status'), [503, 503]);
    await clock.advance(minute);
    const last = await report('m-1', body);
    assert.equal(last.status === 200 && last.rejection?.code, 'NotWritten');
  });

  it('returns a new token only after the record contains it', async () => {
    const { clock, record, refuse, report } = await longRun();
    await clock.advance(6 * minute);
    refuse(true);
    for (let i = 0; i < 3; i++) assert.equal((await report('m-1', { heartbeat: {} })).status, 503);
    assert.equal(record()?.credentialId, 'm-1');
    refuse(false);
    await clock.advance(minute);
    const reportAnswer = await report('m-1', { heartbeat: {} });
    assert.equal(reportAnswer.status, 200);
    assert.equal(reportAnswer.extension?.auth?.token, `token ${record()?.credentialId}`);
    assert.equal(record()?.previousCredential?.id, 'm-1');
    assert.equal((await report(record()?.credentialId ?? '', { outcome: 'Done' })).status, 200);
    assert.equal(record()?.phase, 'Idle');
  });

  it('is answered 503 while the record of a Deleted component cannot be removed', async () => {
    const { clock, inventory, manager, ref } = await stageWithEntry([{ name: 'network' }], {
      network: ({ operation }) =>
        operation === 'delete' ? { kind: 'accepted', heartbeatTimeoutMs: 3_600_000 } : answer({ outcome: 'Done' }),
    });
    inventory.delete(ref);
    await clock.advance(1000);
    const report = async (): Promise<number> => {
      const answered = manager.report(manager.calls[1], { outcome: 'Deleted' });
      await clock.advance(20_000);
      return (await answered).status;
    };
    inventory.fault = (operation, when) => (operation === 'run.remove' && when === 'before' ? refusal : undefined);
    for (let i = 0; i < 2; i++) assert.equal(await report(), 503);
    inventory.fault = () => undefined;
    await clock.advance(5 * minute);
    assert.equal(inventory.entry(ref), undefined);
    assert.equal(await report(), 200);
  });
});
