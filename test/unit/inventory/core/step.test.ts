import assert from 'node:assert/strict';
import { lanes } from '../../../../src/inventory/core/triggers.ts';
import { nextInMs, reasons, StepStage, seen } from '../../../support/inventory/step-stage.ts';

const minute = 60_000;
const hour = 60 * minute;

describe('an idle key', () => {
  it('is queued by the first trigger with its reason and lane', () => {
    const stage = new StepStage().trigger('Created');
    assert.equal(seen(stage), 'queued enqueue reportStatus');
    assert.deepEqual([reasons(stage), stage.effect('enqueue').lane], [['Created'], lanes.manual]);
  });

  for (const [reason, digest, phase] of [
    ['InputChanged', 'b', 'queued'],
    ['ConfigChanged', 'b', 'queued'],
    ['RegistrationChanged', 'b', 'queued'],
    ['InputChanged', 'a', 'idle'],
    ['ConfigChanged', 'a', 'idle'],
    ['RegistrationChanged', 'a', 'idle'],
    ['Created', 'a', 'idle'],
    ['Remote', 'a', 'queued'],
    ['Forced', 'a', 'queued'],
    ['Interval', 'a', 'queued'],
  ] as const) {
    it(`is ${phase} after ${reason} with ${digest === 'a' ? 'the digest of the last run' : 'another digest'}`, () => {
      const stage = new StepStage().done().see({ digest }).trigger(reason);
      assert.equal(stage.state.phase, phase);
      assert.equal(stage.kinds.includes('enqueue'), phase === 'queued');
    });
  }

  it('is queued in the time lane when its interval has passed, and not before', () => {
    const stage = new StepStage().done();
    stage.later(stage.record.nextAtMs === undefined ? 0 : nextInMs(stage) - 1).dequeued();
    assert.equal(seen(stage), 'idle enqueue');
    stage.later(1).dequeued();
    assert.equal(stage.state.phase, 'starting');
    assert.deepEqual(stage.effect('start').next.reasons, ['Interval']);
  });

  for (const [what, jumpMs] of [
    ['forward', 24 * hour],
    ['back', -24 * hour],
  ] as const) {
    it(`is queued when its interval has passed on the monotonic clock, although the wall clock was set ${what}`, () => {
      const stage = new StepStage().done();
      const leftMs = nextInMs(stage);
      stage.nowMs += jumpMs;
      stage.later(leftMs - 1).dequeued();
      assert.equal(seen(stage), 'idle enqueue');
      assert.equal(stage.effect('enqueue').delayMs, 1);
      stage.later(1).dequeued();
      assert.equal(stage.state.phase, 'starting');
    });
  }

  for (const [why, state] of [
    ['NotApplicable', 'NotApplicable'],
    ['Disabled', 'NotApplicable'],
    ['TooLarge', 'Failed'],
    ['RegistrationRefused', 'Failed'],
    ['Suspended', 'Suspended'],
  ] as const) {
    it(`starts nothing while it may not, reports ${why}, and keeps its triggers`, () => {
      const stage = new StepStage().see({ mayRun: { may: 'no', why } }).trigger('Created');
      assert.equal(seen(stage), 'idle reportStatus');
      assert.deepEqual(
        [stage.effect('reportStatus').status.state, stage.effect('reportStatus').status.reason],
        [state, why],
      );
      stage.dequeued();
      assert.equal(stage.kinds.includes('start'), false);
      stage.see({ mayRun: { may: 'reconcile' } }).trigger('ConfigChanged');
      assert.equal(stage.state.phase, 'queued');
    });
  }

  it('keeps a remote event while it may not run', () => {
    const stage = new StepStage().done();
    stage.suspend().trigger('Remote', { detail: 'managed/services' });
    assert.equal(stage.state.phase, 'idle');
    stage.see({ mayRun: { may: 'reconcile' } }).trigger('ConfigChanged');
    assert.deepEqual([stage.state.phase, reasons(stage)], ['queued', ['Remote:managed/services']]);
  });
});

describe('a queued key', () => {
  it('merges reasons, keeps the earliest time and takes the most urgent lane', () => {
    const stage = new StepStage();
    stage.trigger('RegistrationChanged', { atMs: stage.nowMs + minute });
    assert.equal(stage.effect('enqueue').delayMs, minute);
    stage.trigger('InputChanged', { detail: '/spec/cluster' }).trigger('InputChanged', { detail: '/spec/cluster' });
    const { lane, delayMs, reasons: why } = stage.effect('enqueue');
    assert.deepEqual([lane, delayMs, why], [lanes.input, 0, ['RegistrationChanged', 'InputChanged:/spec/cluster']]);
  });

  it('starts with a slot: record before request, seq + 1, with digest, reasons, operation, and deadline', () => {
    const stage = new StepStage().trigger('Created').dequeued();
    assert.equal(seen(stage), 'starting start');
    const { next, base } = stage.effect('start');
    assert.equal(base, undefined);
    assert.deepEqual(
      [next.seq, next.phase, next.inputsDigest, next.reasons, next.operation, next.attempt],
      [1, 'Running', 'a', ['Created'], 'reconcile', 0],
    );
    assert.equal(next.deadlineMs, stage.nowMs + 10_000);
  });

  it('does not start before it is due', () => {
    const stage = new StepStage();
    stage
      .trigger('RegistrationChanged', { atMs: stage.nowMs + minute })
      .later(minute - 1)
      .dequeued();
    assert.equal(seen(stage), 'queued enqueue');
    assert.equal(stage.effect('enqueue').delayMs, 1);
  });

  it('starts at least 200 ms after its last start', () => {
    const stage = new StepStage().running().later(50).outcome({ outcome: 'Done' }).see({ digest: 'b' });
    stage.trigger('InputChanged');
    assert.equal(stage.effect('enqueue').delayMs, 150);
    stage.later(149).dequeued();
    assert.equal(seen(stage), 'queued enqueue');
    stage.later(1).dequeued();
    assert.equal(stage.state.phase, 'starting');
  });

  it('is idle again when its inputs are back to those of the last run', () => {
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged').see({ digest: 'a' }).dequeued();
    assert.equal(stage.state.phase, 'idle');
    assert.deepEqual(reasons(stage), ['Interval']);
    assert.equal(stage.effect('reportStatus').status.state, 'Done');
  });
});

describe('a key that is starting', () => {
  it('runs once the start is stored, and then calls the component', () => {
    assert.equal(seen(new StepStage().running()), 'running call');
  });

  it('is queued after a conflict, with the stored record and its reasons', () => {
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged').dequeued();
    const stored = { record: { ...stage.record, seq: 7 }, resourceVersion: 'other' };
    stage.handle({ kind: 'conflict', stored, inputs: stage.inputs });
    assert.deepEqual([stage.state.phase, stage.record.seq, reasons(stage)], ['queued', 7, ['InputChanged']]);
    assert.equal(stage.dequeued().effect('start').next.seq, 8);
  });

  it('waits for an active run of another process', () => {
    const stage = new StepStage().trigger('Created').dequeued();
    const record = { ...stage.effect('start').next, credentialId: 'JTI=other', inputsDigest: 'z' };
    stage.handle({ kind: 'conflict', stored: { record, resourceVersion: 'other' }, inputs: stage.inputs });
    assert.deepEqual([stage.state.phase, stage.state.pending?.triggers[0]?.reason], ['running', 'Created']);
    assert.equal(stage.kinds.includes('start') || stage.kinds.includes('call'), false);
  });

  it('is retried with the next slot if the start was not attempted', () => {
    const stage = new StepStage().trigger('Created').dequeued().dequeued();
    assert.deepEqual([seen(stage), stage.effect('start').next.seq], ['starting start', 1]);
  });

  it('calls nothing if the entry was deleted meanwhile', () => {
    const stage = new StepStage()
      .trigger('Created')
      .dequeued()
      .see({ mayRun: { may: 'delete' } });
    const { next } = stage.effect('start');
    stage.handle({ kind: 'deleting', inputs: stage.inputs });
    assert.equal(stage.state.phase, 'starting');
    const stored = { record: { ...next, credentialId: 'JTI=1' }, resourceVersion: 'v' };
    stage.handle({ kind: 'started', stored, inputs: stage.inputs });
    assert.equal(seen(stage), 'queued store enqueue');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Idle', undefined]);
    assert.equal(stage.dequeued().effect('start').next.operation, 'delete');
  });

  it('still runs for its earlier triggers after a canceled start whose inputs are back', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' }).later(300);
    stage.see({ digest: 'b' }).trigger('InputChanged').dequeued();
    assert.equal(stage.state.phase, 'starting');
    stage.suspend().started();
    stage
      .see({ digest: 'a', mayRun: { may: 'reconcile' } })
      .trigger('ConfigChanged')
      .later(1000)
      .dequeued();
    assert.equal(stage.state.phase, 'starting');
    assert.ok(stage.effect('start').next.reasons.includes('Retry'));
  });
});

describe('the deletion of an entry', () => {
  const deleting = (stage: StepStage): StepStage =>
    stage
      .see({ mayRun: { may: 'delete' } })
      .handle({ kind: 'deleting', inputs: { ...stage.inputs, mayRun: { may: 'delete' } } });

  it('ends immediately for a component that never ran', () => {
    assert.equal(deleting(new StepStage().trigger('Created')).state.phase, 'gone');
  });

  it('queues delete for a component that ran', () => {
    const stage = deleting(new StepStage().done());
    assert.deepEqual([stage.state.phase, reasons(stage), stage.effect('enqueue').lane], ['queued', ['Deleting'], 0]);
    assert.equal(stage.effect('reportStatus').status.state, 'Deleting');
    const { next } = stage.dequeued().effect('start');
    assert.deepEqual([next.operation, next.seq], ['delete', 2]);
  });

  it('revokes the credential of an active run, waits for its end, then deletes', () => {
    const stage = deleting(new StepStage().running());
    assert.equal(seen(stage), 'draining store reportStatus');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Running', undefined]);
    stage.later(500).outcome({ outcome: 'Done', outputs: { network: { vnetName: 'late' } } });
    assert.deepEqual([stage.state.phase, stage.kinds.includes('apply')], ['queued', false]);
    assert.equal(stage.dequeued().effect('start').next.operation, 'delete');
  });

  it('deletes after the deadline of a silent run', () => {
    const stage = deleting(new StepStage().running()).later(10_000);
    stage.dequeued();
    assert.equal(stage.dequeued().effect('start').next.operation, 'delete');
  });

  it('says until when it waits for the run of a component that answered 202, and that abandonment ends the wait', () => {
    const stage = new StepStage({ maxRunMs: 3_600_000 }).running();
    stage.accepted(300_000).later(20_000);
    // The server does not store so short an extension, so the stored deadline is too early.
    stage.heartbeat(300_000);
    const { status } = deleting(stage).effect('reportStatus');
    assert.deepEqual(
      [status.state, status.reason, status.message],
      [
        'Deleting',
        'Running',
        'the teardown waits for the run that began at 2026-11-21T09:00:00Z; it ends at 2026-11-21T09:05:20Z at the latest; to finish without the teardown, annotate the entry with abandon.inventory.drawbridge.dev/network=REASON',
      ],
    );
    assert.equal(stage.record.deadlineMs, stage.nowMs + 300_000);
    stage.outcome({ outcome: 'Done' });
    assert.equal(stage.effect('reportStatus').status.message, undefined);
  });

  it('does not ask for heartbeats when a run passes its deadline after the deletion', () => {
    const stage = new StepStage().running();
    stage.accepted();
    deleting(stage).later(60_000).dequeued();
    assert.equal(
      stage.record.lastOutcome?.message,
      'the component reported no valid outcome before the deadline of the run; the entry is being deleted, so no heartbeat extends the run; a report that was answered 401 or 403 does not count: check the answers in the log of the component; once a heartbeat is answered 403, the component must stop, and POST its outcome to callback of the call',
    );
  });

  for (const [end, text] of [
    [
      (stage: StepStage) => stage.later(300_000).dequeued(),
      /^tearing down; last outcome: Retry \(LeaseOver\): .*; to finish without the teardown, annotate the entry with abandon\.inventory\.drawbridge\.dev\/network=REASON$/,
    ],
    [
      (stage: StepStage) => stage.outcome({ outcome: 'Retry', message: '2 zones left' }),
      /^tearing down; last outcome: Retry: 2 zones left$/,
    ],
  ] as const) {
    it(`has the last outcome of a teardown while it runs again: ${text}`, () => {
      const stage = deleting(new StepStage().done()).dequeued().started();
      stage.accepted(300_000);
      end(stage).later(3_600_000).dequeued().started();
      stage.accepted(300_000);
      assert.match(stage.effect('reportStatus').status.message ?? '', text);
    });
  }

  it('completes a pending write of outputs first', () => {
    const stage = deleting(new StepStage().running().outcome({ outcome: 'Done', outputs: { network: {} } }));
    assert.equal(stage.state.phase, 'applying');
    stage.later(500).handle({ kind: 'applied', problem: undefined, inputs: stage.inputs });
    assert.equal(stage.dequeued().effect('start').next.operation, 'delete');
  });

  it('removes outputs and record after Deleted', () => {
    const stage = deleting(new StepStage().done()).dequeued().started();
    const base = stage.state.stored;
    stage.outcome({ outcome: 'Deleted' });
    assert.equal(seen(stage), 'gone recordCallResult retire reportStatus');
    assert.equal(stage.effect('retire').base, base);
  });

  it('runs a component again when the reader that it waits for is removed', () => {
    const stage = deleting(new StepStage().done()).dequeued().started();
    stage.outcome({ outcome: 'NotReady', missing: [{ path: '/status/outputs/cluster', want: 'absent' }] });
    assert.equal(stage.state.phase, 'idle');
    stage.later(500).see({ arrived: true }).trigger('InputChanged').dequeued();
    assert.equal(stage.effect('start').next.operation, 'delete');
  });

  for (const [what, stage] of [
    ['is idle', () => new StepStage().done()],
    ['is running', () => new StepStage().running()],
    ['still runs after the deletion', () => deleting(new StepStage().running())],
  ] as const) {
    it(`does not wait for an abandoned component that ${what}`, () => {
      const abandoned = stage().see({ mayRun: { may: 'no', why: 'Abandoned' } });
      abandoned.handle({ kind: 'deleting', inputs: abandoned.inputs });
      assert.deepEqual([abandoned.state.phase, abandoned.kinds.includes('retire')], ['gone', true]);
    });
  }
});
