import assert from 'node:assert/strict';
import { lanes } from '../../../../src/inventory/core/triggers.ts';
import { inputsOf, reasons, StepStage, seen } from '../../../support/inventory/step-stage.ts';

const minute = 60_000;

describe('a record from the store', () => {
  const record = new StepStage().running().record;
  let version = 0;
  const found = (stage: StepStage, rest: Partial<typeof record>): StepStage => {
    version += 1;
    return stage.handle({
      kind: 'recordChanged',
      stored: { record: { ...record, ...rest }, resourceVersion: `f${version}` },
      inputs: stage.inputs,
    });
  };
  const at = (ms: number): number => new StepStage().nowMs + ms;

  it('of a synchronous run: ends it at once, because its answer is lost', () => {
    const stage = found(new StepStage(), { phase: 'Running' });
    assert.deepEqual([seen(stage), stage.record.attempt], ['idle store reportStatus enqueue', 1]);
    assert.equal(stage.record.credentialId, undefined);
    assert.match(stage.record.lastOutcome?.message ?? '', /of the leader, or an internal error interrupted the run,/);
  });

  it('of a pending write of outputs: runs again, because the write may be lost', () => {
    const stage = found(new StepStage(), { phase: 'Applying', credentialId: undefined, asynchronous: true });
    assert.deepEqual([stage.state.phase, stage.record.lastOutcome?.outcome], ['idle', 'Retry']);
  });

  it('of an asynchronous run: keeps it until its deadline and accepts its outcome', () => {
    // The granted deadline may be a tenth later than the stored one.
    const stage = found(new StepStage(), { asynchronous: true, deadlineMs: at(30_000) });
    assert.deepEqual([stage.state.phase, stage.effect('enqueue').delayMs], ['running', 36_000]);
    stage.outcome({ outcome: 'Done' });
    assert.equal(stage.record.lastOutcome?.outcome, 'Done');
  });

  for (const [heartbeatTimeoutMs, expected] of [
    [-300_000, 10_000],
    [300_000, 60_000],
  ] as const) {
    it(`of an asynchronous run with a deadline in ${heartbeatTimeoutMs} ms on another clock: ${expected} ms on that of this process`, () => {
      const stage = found(new StepStage(), { asynchronous: true, deadlineMs: at(heartbeatTimeoutMs) });
      assert.equal(stage.effect('enqueue').delayMs, expected);
    });
  }

  it('of an idle key: runs it when it is due, despite clock differences', () => {
    const idle = { phase: 'Idle', credentialId: undefined } as const;
    assert.equal(found(new StepStage(), { ...idle, nextAtMs: at(5000) }).effect('enqueue').delayMs, 5000);
    assert.equal(found(new StepStage(), { ...idle, nextAtMs: at(-5000) }).effect('enqueue').delayMs, 0);
    const done = new StepStage().done().record;
    assert.equal(found(new StepStage(), { ...done, nextAtMs: at(1e12) }).effect('enqueue').delayMs, 66 * minute);
  });

  for (const [attempts, expectedMs] of [
    [1, 1_000],
    [4, 8_000],
    [40, 300_000],
  ] as const) {
    it(`of a key after ${attempts} attempts: retries within ${expectedMs} ms, whatever another clock wrote`, () => {
      const retried = new StepStage().running().outcome({ outcome: 'Retry' }).record;
      const stage = found(new StepStage(), { ...retried, attempt: attempts, nextAtMs: at(72 * minute) });
      assert.deepEqual([stage.effect('enqueue').delayMs, reasons(stage)], [expectedMs, ['Retry']]);
    });
  }

  it('of a run that was not accepted: retries within 5 min, whatever the previous outcome was', () => {
    const stage = new StepStage()
      .running()
      .outcome({ outcome: 'Failed' })
      .later(1000)
      .trigger('Forced')
      .dequeued()
      .started();
    stage.unreachable(60_000);
    const { record: released } = stage;
    assert.equal(found(new StepStage(), { ...released, nextAtMs: at(60_000) }).effect('enqueue').delayMs, 60_000);
    assert.equal(found(new StepStage(), { ...released, nextAtMs: at(1e12) }).effect('enqueue').delayMs, 5 * minute);
  });

  it('with another digest: is queued after urgent keys', () => {
    const stage = found(new StepStage(), { phase: 'Idle', credentialId: undefined, inputsDigest: 'old' });
    assert.deepEqual([stage.state.phase, stage.effect('enqueue').lane], ['queued', lanes.input]);
  });

  it('of a run that started long ago on another clock: the next start is still 200 ms after the last of this process', () => {
    const stage = found(new StepStage().running(), { seq: 2, startedAtMs: at(-310_000) });
    stage.dequeued().see({ digest: 'b' });
    stage.later(100).trigger('InputChanged');
    assert.ok((stage.state.lastStart ?? 0) >= stage.monotonicMs - 100);
  });

  it('older than the record of the state: is ignored', () => {
    const stage = new StepStage().done();
    const before = stage.state;
    found(stage, { phase: 'Running' });
    assert.deepEqual([stage.state, stage.kinds], [before, []]);
  });

  it('of a later run: replaces the run of this process', () => {
    const stage = found(new StepStage().running(), { seq: 2, asynchronous: true, deadlineMs: at(30_000) });
    assert.equal(stage.record.seq, 2);
    stage.outcome({ outcome: 'Done' }, undefined, 1);
    assert.deepEqual([stage.state.phase, stage.kinds], ['running', []]);
  });

  it('of a run that another process ended: ends the wait of a timer, but not of another trigger', () => {
    // Found by random schedules with seed 20261367.
    const done = new StepStage().done().record;
    const replica = found(new StepStage().running(), { ...done, nextAtMs: at(0) }).dequeued();
    assert.deepEqual(reasons(replica), ['Interval'], 'waits for 200 ms after the last start');
    const waiting = replica.state;
    const idle = { ...done, seq: 2, lastOutcome: done.lastOutcome && { ...done.lastOutcome, seq: 2 } };
    const end = (): StepStage => {
      found(replica, { seq: 2, lastOutcome: done.lastOutcome });
      return found(replica, { ...idle, nextAtMs: at(30 * minute) });
    };
    assert.deepEqual([end().state.phase, replica.effect('enqueue').delayMs], ['idle', 30 * minute]);
    replica.state = waiting;
    replica.trigger('Remote');
    end();
    assert.deepEqual([replica.state.phase, reasons(replica)], ['queued', ['Remote']]);
  });

  it('that was deleted while the entry exists: resets the key', () => {
    const stage = new StepStage().done().handle({ kind: 'recordChanged', stored: undefined, inputs: inputsOf() });
    assert.deepEqual([stage.state.phase, reasons(stage)], ['queued', ['Created']]);
  });

  it('during a start: is ignored until the start completes', () => {
    const stage = new StepStage().done().trigger('Forced').dequeued();
    const before = stage.state;
    assert.equal(found(stage, { seq: 9 }).state, before);
  });
});

describe('a write that loses the compare-and-swap', () => {
  it('of a finished run: is repeated on the stored version', () => {
    const stage = new StepStage().running();
    const running = stage.state.stored;
    stage.outcome({ outcome: 'Done' });
    stage.handle({ kind: 'conflict', stored: running && { ...running, resourceVersion: 'x' }, inputs: stage.inputs });
    const { next, base } = stage.effect('store');
    assert.deepEqual([next.lastOutcome?.outcome, base.resourceVersion, stage.state.phase], ['Done', 'x', 'idle']);
  });

  it('of a replaced run: adopts the later one', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Done' });
    const record = { ...stage.record, seq: 5, inputsDigest: 'a' };
    stage.handle({ kind: 'conflict', stored: { record, resourceVersion: 'x' }, inputs: stage.inputs });
    assert.deepEqual([stage.record.seq, stage.kinds.includes('store')], [5, false]);
  });

  it('and whose first answer was lost: is not repeated', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Done' });
    stage.handle({ kind: 'conflict', stored: { record: stage.record, resourceVersion: 'x' }, inputs: stage.inputs });
    assert.deepEqual([seen(stage), stage.state.stored?.resourceVersion], ['idle enqueue reportStatus', 'x']);
  });
});
