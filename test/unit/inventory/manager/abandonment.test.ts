import assert from 'node:assert/strict';
import type { ComponentStatus } from '../../../../src/api/inventory/cluster-inventory.ts';
import type { Journal } from '../../../../src/audit/journal.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import { AbandonmentReporter } from '../../../../src/inventory/manager/abandonments.ts';
import { ApiError } from '../../../../src/kube/errors.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { answer, done, type InMemoryManager } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

const abandonFor = (reason: string) => ({ 'abandon.inventory.drawbridge.dev/network': reason });
const abandon = abandonFor('lost');
const byAlice = { ...abandon, 'abandoned-by.inventory.drawbridge.dev/network': 'alice' };

const withOneRun = async () => {
  const stage = await memoryStage([{ name: 'network' }], {
    network: ({ operation }) => (operation === 'reconcile' ? done() : answer({ outcome: 'Retry' })),
  });
  const { ref } = stage.inventory.create({ name: 'one' });
  await stage.clock.advance(1000);
  const annotate = async (annotations: Readonly<Record<string, string>>): Promise<void> => {
    stage.inventory.annotate(ref, annotations);
    await stage.clock.advance(3000);
  };
  return { ...stage, ref, annotate, row: () => stage.inventory.entry(ref)?.components[0] };
};

describe('an abandoned component', () => {
  it('shows who abandoned it, also if it has never applied to the entry', async () => {
    const { clock, inventory } = await memoryStage([{ name: 'network', modes: ['byoc'] }]);
    const { ref } = inventory.create({ name: 'one', annotations: byAlice });
    await clock.advance(3000);
    assert.equal(inventory.entry(ref)?.components[0]?.message, 'abandoned by alice: lost');
  });

  it('loses its access to an entry that is being deleted', async () => {
    const { clock, inventory, manager, ref, annotate } = await withOneRun();
    inventory.delete(ref);
    await clock.advance(3000);
    await annotate(abandon);
    assert.deepEqual(manager.withdrawnComponents, [`${ref.uid}/network`]);
    assert.deepEqual(manager.audited, ['Abandoned']);
    assert.equal(inventory.entry(ref), undefined);
  });

  it('keeps its record, and shows why, while the API server refuses to withdraw its access', async () => {
    const { clock, inventory, manager, annotate, row } = await withOneRun();
    manager.withdrawing = () => {
      throw new ApiError(403, 'Forbidden', 'may not delete');
    };
    await annotate(byAlice);
    await clock.advance(60_000);
    assert.equal(inventory.records().length, 1);
    assert.equal(row()?.reason, 'NotWritten');
    assert.match(row()?.message ?? '', /rejected withdrawing the access of a component: .*may not delete/);
    manager.withdrawing = () => {};
    await clock.advance(60_000);
    assert.deepEqual(inventory.records(), []);
    assert.equal(row()?.reason, 'Abandoned');
  });
});

describe('an abandonment', () => {
  const notes = ({ recorded }: InMemoryManager) =>
    recorded.filter(({ reason }) => reason === 'Abandoned').map(({ note }) => note);
  const withoutRun = '; the server has no run of it for this entry, so it tears down nothing';

  it('is recorded for a component that never ran, because its endpoint accepts no calls', async () => {
    const stage = await memoryStage([{ name: 'network' }], {
      network: () => ({ kind: 'notAccepted', code: 'Busy', message: 'the component answered 503' }),
    });
    for (let i = 0; i < 10; i++) stage.inventory.create({ name: `e${i}` });
    await stage.clock.advance(10_000);
    const { ref } = stage.inventory.create({ name: 'one', annotations: byAlice });
    await stage.clock.advance(3000);
    assert.equal(stage.inventory.entry(ref)?.components[0]?.message, 'abandoned by alice: lost');
    assert.deepEqual(notes(stage.manager), [`component network was abandoned by alice: lost${withoutRun}`]);
    assert.deepEqual(stage.manager.audited, ['Abandoned']);
  });

  it('is recorded again for another reason, and after it was undone, but not by the next leader', async () => {
    const { clock, manager, replica, annotate } = await withOneRun();
    await annotate(byAlice);
    await annotate({ ...byAlice, ...abandonFor('moved') });
    await annotate({});
    await annotate({ ...byAlice, ...abandonFor('moved') });
    const notTornDown = '; the resources that it created were not torn down';
    const expected = [
      ['lost', notTornDown],
      ['moved', withoutRun],
      ['moved', notTornDown],
    ].map(([reason, consequence]) => `component network was abandoned by alice: ${reason}${consequence}`);
    assert.deepEqual(notes(manager), expected);
    assert.deepEqual(manager.audited, ['Abandoned', 'Abandoned', 'Abandoned']);
    await manager.stop();
    const next = replica().start();
    await clock.advance(3000);
    assert.deepEqual([notes(next), next.audited], [[], []]);
  });

  it('is recorded once if a status write that began before it ends after it was recorded', () => {
    const lines: string[] = [];
    const reporter = new AbandonmentReporter({
      journal: { append: async ({ message = '' }) => void lines.push(message) } as Partial<Journal> as Journal,
      events: { record: () => {}, close: async () => {} },
      log: noLog,
      account: 'drawbridge-inventory',
    });
    const entryAt = (resourceVersion: string, annotations: Readonly<Record<string, string>>): Entry => {
      const ref = { namespace: 'fleet', name: 'one', uid: 'e-1' };
      return { ref, resourceVersion, annotations, deleting: true, components: [] } as unknown as Entry;
    };
    const [before, after] = [entryAt('9', {}), entryAt('10', byAlice)];
    const statusOf = (message?: string) => [
      { name: 'network', ...(message === undefined ? {} : { reason: 'Abandoned', message }) } as ComponentStatus,
    ];
    reporter.report(after, 'network');
    reporter.statusWritten(before, statusOf(), () => true);
    reporter.statusWritten(after, statusOf('abandoned by alice: lost'), () => true);
    assert.equal(lines.length, 1);
    reporter.statusWritten(entryAt('11', {}), statusOf(), () => true);
    reporter.statusWritten(entryAt('12', byAlice), statusOf('abandoned by alice: lost'), () => true);
    assert.equal(lines.length, 2);
  });
});

describe('an abandon annotation without a recorded user, on an entry that is not being deleted', () => {
  const notice =
    'annotation abandon.inventory.drawbridge.dev/network has no effect, because the webhook recorded no user for it; set another reason';

  it('shows in the status until it is removed, and changes nothing else', async () => {
    const { inventory, manager, annotate, row } = await withOneRun();
    await annotate(abandon);
    assert.equal(row()?.state, 'Done');
    assert.equal(inventory.records().length, 1);
    assert.equal(row()?.message, notice);
    assert.deepEqual([manager.withdrawnComponents, manager.audited], [[], []]);
    await annotate({});
    assert.equal(row()?.message, undefined);
  });

  it('shows before the message of the component, once', async () => {
    const { clock, inventory, registrations } = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Failed', message: 'no quota' }),
    });
    const { ref } = inventory.create({ name: 'one', annotations: abandon });
    await clock.advance(1000);
    const message = () => inventory.entry(ref)?.components[0]?.message;
    const expected = `${notice}; no quota; annotate the entry with force.inventory.drawbridge.dev/network=NEW-VALUE to repeat the run`;
    assert.equal(message(), expected);
    registrations.remove('network');
    await clock.advance(3000);
    registrations.put({ name: 'network' });
    await clock.advance(3000);
    assert.equal(message(), expected);
  });
});
