import assert from 'node:assert/strict';
import { lanes } from '../../../../src/inventory/core/triggers.ts';
import { inputsOf, notReady, StepStage } from '../../../support/inventory/step-stage.ts';

const minute = 60_000;
const hour = 60 * minute;

/** The phase and the kinds of the last effects. */
const seen = (stage: StepStage): string => [stage.state.phase, ...stage.kinds].join(' ');
const nextInMs = (stage: StepStage): number => (stage.record.nextAtMs ?? Number.NaN) - stage.nowMs;
const reasons = (stage: StepStage): readonly string[] => stage.effect('enqueue').reasons;

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
    stage.later(stage.record.nextAtMs === undefined ? 0 : nextInMs(stage) - 1).slot();
    assert.equal(seen(stage), 'idle enqueue');
    stage.later(1).slot();
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
      stage.later(leftMs - 1).slot();
      assert.equal(seen(stage), 'idle enqueue');
      assert.equal(stage.effect('enqueue').delayMs, 1);
      stage.later(1).slot();
      assert.equal(stage.state.phase, 'starting');
    });
  }

  for (const [why, state] of [
    ['NotApplicable', 'NotApplicable'],
    ['Disabled', 'NotApplicable'],
    ['TooLarge', 'Failed'],
    ['RegistrationRefused', 'Failed'],
    ['Suspended', 'Progressing'],
  ] as const) {
    it(`starts nothing while it may not, reports ${why}, and keeps its triggers`, () => {
      const stage = new StepStage().see({ mayRun: { may: 'no', why } }).trigger('Created');
      assert.equal(seen(stage), 'idle reportStatus');
      assert.deepEqual(
        [stage.effect('reportStatus').status.state, stage.effect('reportStatus').status.reason],
        [state, why],
      );
      stage.slot();
      assert.equal(stage.kinds.includes('start'), false);
      stage.see({ mayRun: { may: 'reconcile' } }).trigger('ConfigChanged');
      assert.equal(stage.state.phase, 'queued');
    });
  }

  it('keeps a remote event while it may not run', () => {
    const stage = new StepStage().done();
    stage.see({ mayRun: { may: 'no', why: 'Suspended' } }).trigger('Remote', { about: 'managed/services' });
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
    stage.trigger('InputChanged', { about: '/spec/cluster' }).trigger('InputChanged', { about: '/spec/cluster' });
    const { lane, delayMs, reasons: why } = stage.effect('enqueue');
    assert.deepEqual([lane, delayMs, why], [lanes.input, 0, ['RegistrationChanged', 'InputChanged:/spec/cluster']]);
  });

  it('starts with a slot: record before request, seq + 1, with digest, reasons, operation, and deadline', () => {
    const stage = new StepStage().trigger('Created').slot();
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
      .slot();
    assert.equal(seen(stage), 'queued enqueue');
    assert.equal(stage.effect('enqueue').delayMs, 1);
  });

  it('starts at least 200 ms after its last start', () => {
    const stage = new StepStage().running().later(50).outcome({ outcome: 'Done' }).see({ digest: 'b' });
    stage.trigger('InputChanged');
    assert.equal(stage.effect('enqueue').delayMs, 150);
    stage.later(149).slot();
    assert.equal(seen(stage), 'queued enqueue');
    stage.later(1).slot();
    assert.equal(stage.state.phase, 'starting');
  });

  it('is idle again when its inputs are back to those of the last run', () => {
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged').see({ digest: 'a' }).slot();
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
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged').slot();
    const stored = { record: { ...stage.record, seq: 7 }, resourceVersion: 'other' };
    stage.handle({ kind: 'conflict', stored, inputs: stage.inputs });
    assert.deepEqual([stage.state.phase, stage.record.seq, reasons(stage)], ['queued', 7, ['InputChanged']]);
    assert.equal(stage.slot().effect('start').next.seq, 8);
  });

  it('waits for an active run of another process', () => {
    const stage = new StepStage().trigger('Created').slot();
    const record = { ...stage.effect('start').next, credentialId: 'JTI=other', inputsDigest: 'z' };
    stage.handle({ kind: 'conflict', stored: { record, resourceVersion: 'other' }, inputs: stage.inputs });
    assert.deepEqual([stage.state.phase, stage.state.pending?.triggers[0]?.reason], ['running', 'Created']);
    assert.equal(stage.kinds.includes('start') || stage.kinds.includes('call'), false);
  });

  it('is retried with the next slot if the start was not attempted', () => {
    const stage = new StepStage().trigger('Created').slot().slot();
    assert.deepEqual([seen(stage), stage.effect('start').next.seq], ['starting start', 1]);
  });

  it('calls nothing if the entry was deleted meanwhile', () => {
    const stage = new StepStage()
      .trigger('Created')
      .slot()
      .see({ mayRun: { may: 'delete' } });
    const { next } = stage.effect('start');
    stage.handle({ kind: 'deleting', inputs: stage.inputs });
    assert.equal(stage.state.phase, 'starting');
    const stored = { record: { ...next, credentialId: 'JTI=1' }, resourceVersion: 'v' };
    stage.handle({ kind: 'started', stored, inputs: stage.inputs });
    assert.equal(seen(stage), 'queued store enqueue');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Idle', undefined]);
    assert.equal(stage.slot().effect('start').next.operation, 'delete');
  });

  it('still runs for its earlier triggers after a canceled start whose inputs are back', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' }).later(300);
    stage.see({ digest: 'b' }).trigger('InputChanged').slot();
    assert.equal(stage.state.phase, 'starting');
    stage.see({ mayRun: { may: 'no', why: 'Suspended' } }).started();
    stage
      .see({ digest: 'a', mayRun: { may: 'reconcile' } })
      .trigger('ConfigChanged')
      .later(1000)
      .slot();
    assert.equal(stage.state.phase, 'starting');
    assert.ok(stage.effect('start').next.reasons.includes('Retry'));
  });
});

describe('a running key', () => {
  it('keeps a trigger', () => {
    const stage = new StepStage().running().trigger('Remote');
    assert.deepEqual([stage.state.phase, stage.state.pending?.triggers.length, stage.kinds], ['running', 1, []]);
  });

  it('stores, writes outputs, then finishes', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Done', outputs: { network: { vnetName: 'v' } } });
    assert.equal(seen(stage), 'applying endpoint store apply');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Applying', undefined]);
    stage.handle({ kind: 'applied', problem: undefined, inputs: stage.inputs });
    assert.equal(seen(stage), 'idle store reportStatus enqueue');
    assert.equal(stage.record.lastOutcome?.outcome, 'Done');
  });

  for (const [code, outcome] of [
    ['ForeignPath', 'Failed'],
    ['ForeignSecret', 'Failed'],
    ['EntryTooLarge', 'Failed'],
    ['NoSuchRun', 'Retry'],
    ['Unavailable', 'Retry'],
  ] as const) {
    it(`is ${outcome} if its outputs are rejected with ${code}`, () => {
      const stage = new StepStage().running().outcome({ outcome: 'Done', outputs: { network: {} } });
      stage.handle({ kind: 'applied', problem: { code, message: 'no' }, inputs: stage.inputs });
      assert.deepEqual([stage.record.lastOutcome?.outcome, stage.record.lastOutcome?.reason], [outcome, code]);
    });
  }

  for (const [random, expected] of [
    [0, 0.9],
    [0.5, 1],
    [1, 1.1],
  ] as const) {
    it(`is idle after Done, and runs again after ${expected} of its interval`, () => {
      const stage = new StepStage().running();
      stage.random = random;
      stage.outcome({ outcome: 'Done' });
      assert.equal(seen(stage), 'idle endpoint store reportStatus enqueue');
      assert.deepEqual([stage.record.credentialId, stage.record.phase, stage.record.attempt], [undefined, 'Idle', 0]);
      assert.ok(Math.abs(nextInMs(stage) - expected * hour) < 1);
      assert.equal(stage.effect('reportStatus').status.state, 'Done');
    });
  }

  for (const [what, act, expected] of [
    ['another digest', (stage: StepStage) => stage.see({ digest: 'b' }).trigger('InputChanged'), 'queued'],
    ['another digest without a trigger', (stage: StepStage) => stage.see({ digest: 'b' }), 'queued'],
    [
      'another digest, and then the first one again,',
      (stage: StepStage) =>
        stage.see({ digest: 'b' }).trigger('InputChanged').see({ digest: 'a' }).trigger('InputChanged'),
      'queued',
    ],
    ['a remote event', (stage: StepStage) => stage.trigger('Remote'), 'queued'],
    ['force', (stage: StepStage) => stage.trigger('Forced'), 'queued'],
    ['a trigger with the digest of the run', (stage: StepStage) => stage.trigger('InputChanged'), 'idle'],
    ['its interval', (stage: StepStage) => stage.trigger('Interval'), 'idle'],
  ] as const) {
    it(`is ${expected} after Done if it received ${what} meanwhile`, () => {
      const stage = new StepStage().running();
      act(stage);
      stage.later(500).outcome({ outcome: 'Done' });
      assert.equal(stage.state.phase, expected);
      if (expected !== 'queued') return;
      assert.deepEqual([stage.effect('enqueue').delayMs, nextInMs(stage)], [0, 0]);
      assert.equal(stage.slot().state.phase, 'starting');
    });
  }

  it('handles many triggers in one run', () => {
    const stage = new StepStage().running().see({ digest: 'b' });
    for (let i = 0; i < 20; i += 1) stage.trigger('InputChanged', { about: `/spec/cluster/${i}` }).trigger('Remote');
    stage.later(500).outcome({ outcome: 'Done' }).slot().started();
    assert.equal(stage.record.reasons.length, 8);
    assert.ok(stage.record.reasons.includes('Remote'));
    stage.later(500).outcome({ outcome: 'Done' });
    assert.deepEqual([stage.state.phase, stage.record.seq], ['idle', 2]);
  });

  for (const [interval, random, expected] of [
    [hour, 0, 8 * minute],
    [hour, 1, 12 * minute],
    [5 * minute, 0.5, 5 * minute],
  ] as const) {
    it(`runs again ${expected / minute} minutes after NotReady, without counting attempts`, () => {
      const stage = new StepStage({ intervalMs: interval }).running();
      stage.random = random;
      stage.outcome(notReady, { heldAtStart: false, holdsNow: false });
      assert.deepEqual([stage.state.phase, stage.record.attempt], ['idle', 0]);
      assert.ok(Math.abs(nextInMs(stage) - expected) < 1);
      assert.deepEqual(
        stage.effect('reportStatus').status.missing,
        notReady.outcome === 'NotReady' ? notReady.missing : [],
      );
    });
  }

  it('runs again immediately after NotReady if the missing input arrived during the call', () => {
    const stage = new StepStage().running().later(500).outcome(notReady, { heldAtStart: false, holdsNow: true });
    assert.deepEqual(
      [stage.state.phase, reasons(stage)],
      ['queued', ['InputArrived:/status/outputs/cluster/endpoint']],
    );
  });

  it('waits for its delay if the missing input was present at the start, and warns', () => {
    const stage = new StepStage().running().later(500).outcome(notReady, { heldAtStart: true, holdsNow: true });
    assert.deepEqual([stage.state.phase, stage.effect('warn').code], ['idle', 'MissingAlreadySatisfied']);
    stage.see({ arrived: true }).trigger('InputChanged');
    assert.equal(stage.state.phase, 'idle');
    // The component had read a later version than the server had.
    stage.see({ arrived: false }).trigger('InputChanged').see({ arrived: true }).trigger('InputChanged');
    assert.equal(stage.state.phase, 'queued');
  });

  it('runs as soon as its missing input arrives', () => {
    const stage = new StepStage().running().outcome(notReady, { heldAtStart: false, holdsNow: false }).later(500);
    stage.trigger('InputChanged');
    assert.equal(stage.state.phase, 'idle');
    stage.see({ arrived: true }).trigger('InputArrived');
    assert.equal(stage.state.phase, 'queued');
  });

  for (const [asked, expected] of [
    [0, 1],
    [30, 30],
    [86_400, 3600],
  ] as const) {
    it(`runs again after ${expected} s if it is Progressing and requested ${asked}`, () => {
      const stage = new StepStage().running().outcome({ outcome: 'Progressing', requeueAfterSeconds: asked });
      assert.deepEqual([stage.state.phase, nextInMs(stage), stage.record.attempt], ['idle', expected * 1000, 0]);
      assert.equal(
        stage
          .later(expected * 1000)
          .slot()
          .effect('start').next.reasons[0],
        'Requeue',
      );
    });
  }

  it('retries with full jitter: up to 1, 2, 4 … 300 s', () => {
    const stage = new StepStage().running();
    stage.random = 0.999_999;
    const delays: number[] = [];
    for (let i = 0; i < 12; i += 1) {
      stage.outcome({ outcome: 'Retry' });
      assert.equal(stage.record.attempt, i + 1);
      delays.push(Math.round(nextInMs(stage) / 1000));
      stage.later(nextInMs(stage)).slot();
      assert.deepEqual(stage.effect('start').next.reasons, ['Retry']);
      stage.started();
    }
    assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    stage.outcome({ outcome: 'Done' });
    assert.equal(stage.record.attempt, 0);
  });

  it('skips its backoff for changed inputs, and resets its attempts', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' }).later(300).see({ digest: 'b' });
    stage.trigger('InputChanged').slot();
    assert.deepEqual([stage.state.phase, stage.effect('start').next.attempt], ['starting', 0]);
  });

  for (const [what, event] of [
    ['the deadline passed', { kind: 'slot' }],
    ['the answer is invalid', { kind: 'callFailed', code: 'NotJson', message: 'x' }],
    ['the call timed out', { kind: 'callFailed', code: 'Timeout', message: 'x' }],
  ] as const) {
    it(`counts an attempt if ${what}`, () => {
      const stage = new StepStage().running().later(10_001);
      stage.handle({ ...event, inputs: stage.inputs });
      assert.deepEqual([stage.state.phase, stage.record.attempt], ['idle', 1]);
      assert.deepEqual([stage.record.lastOutcome?.outcome, stage.record.credentialId], ['Retry', undefined]);
      assert.equal(stage.effect('reportStatus').status.state, 'Retrying');
    });
  }

  it('does not end before its deadline', () => {
    const stage = new StepStage().running().later(9999);
    stage.slot();
    assert.equal(stage.state.phase, 'running');
  });

  it('is queued again if it was not accepted: seq is used up, attempts and digest are unchanged', () => {
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged', { about: '/spec/mode' });
    stage.slot().started();
    stage.handle({ kind: 'notAccepted', retryAfterMs: 7000, inputs: stage.inputs });
    assert.equal(seen(stage), 'queued endpoint store enqueue');
    assert.deepEqual([stage.effect('endpoint').verdict, stage.effect('enqueue').delayMs], ['failed', 7000]);
    const { seq, attempt, inputsDigest, credentialId, phase } = stage.record;
    assert.deepEqual([seq, attempt, inputsDigest, credentialId, phase], [2, 0, 'a', undefined, 'Idle']);
    const { next } = stage.later(7000).slot().effect('start');
    assert.deepEqual([next.seq, next.reasons[0]], [3, 'InputChanged:/spec/mode']);
  });

  it('keeps its attempts if a run in between was not accepted', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' });
    stage.later(nextInMs(stage)).slot().started();
    stage.handle({ kind: 'notAccepted', retryAfterMs: undefined, inputs: stage.inputs });
    assert.equal(stage.record.attempt, 1);
  });

  it('waits an hour after Failed, despite remote events', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Failed', message: 'no such region' }).later(500);
    assert.deepEqual([stage.state.phase, stage.record.attempt], ['idle', 0]);
    assert.equal(Math.round((nextInMs(stage) + 500) / minute), 60);
    assert.equal(stage.trigger('Remote').state.phase, 'idle');
    assert.equal(stage.trigger('Forced').state.phase, 'queued');
  });

  it('runs immediately after Failed if the inputs change', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Failed' }).later(500).see({ digest: 'b' });
    assert.equal(stage.trigger('ConfigChanged').state.phase, 'queued');
  });

  for (const [operation, may, outcome] of [
    ['reconcile', 'reconcile', 'Deleted'],
    ['delete', 'delete', 'Done'],
  ] as const) {
    it(`rejects ${outcome} as an outcome of ${operation}`, () => {
      const stage = new StepStage().done().see({ mayRun: { may } });
      stage.trigger('Forced').slot().started().outcome({ outcome });
      const { lastOutcome } = stage.record;
      assert.deepEqual([lastOutcome?.outcome, lastOutcome?.reason], ['Retry', 'InvalidOutcome']);
    });
  }

  it('ignores an outcome of another run, and a repeated one', () => {
    const stage = new StepStage().running();
    stage.outcome({ outcome: 'Done' }, undefined, 7);
    assert.deepEqual([stage.state.phase, stage.kinds], ['running', []]);
    stage.outcome({ outcome: 'Done' });
    const before = stage.state;
    stage.outcome({ outcome: 'Failed' });
    assert.deepEqual([stage.state, stage.kinds], [before, []]);
  });

  it('keeps at most ten past runs, latest first', () => {
    const stage = new StepStage().done();
    for (let i = 0; i < 12; i += 1) stage.trigger('Forced').slot().started().outcome({ outcome: 'Done' }).later(500);
    const { history, lastOutcome } = stage.record;
    assert.deepEqual([lastOutcome?.seq, history.length, history[0]?.seq, history[9]?.seq], [13, 10, 12, 3]);
  });
});

describe('an asynchronous run', () => {
  const accepted = (): StepStage => {
    const stage = new StepStage({ maxRunMs: 90_000 }).running();
    return stage.handle({ kind: 'accepted', leaseMs: 60_000 });
  };

  it('stores its deadline', () => {
    const stage = accepted();
    assert.equal(seen(stage), 'running endpoint store enqueue');
    assert.deepEqual([stage.record.asynchronous, stage.record.deadlineMs], [true, stage.nowMs + 60_000]);
  });

  it('stores its deadline only if it grew by a tenth, however often it reports', () => {
    const stage = accepted();
    let stored = 0;
    for (let i = 0; i < 20; i++) {
      stage.later(1000).handle({ kind: 'heartbeat', leaseMs: 60_000, credential: undefined });
      assert.equal(stage.state.deadlineAt, stage.monotonicMs + 60_000);
      stored += stage.kinds.filter((kind) => kind === 'store').length;
    }
    assert.equal(stored, 3);
    stage.handle({ kind: 'heartbeat', leaseMs: 60_000, credential: { id: 'JTI=2', expiresAtMs: 0 } });
    assert.ok(stage.kinds.includes('store'));
  });

  it('is extended by each heartbeat up to its maximum duration', () => {
    const stage = accepted().later(50_000).handle({ kind: 'heartbeat', leaseMs: 60_000, credential: undefined });
    assert.equal(stage.record.deadlineMs, stage.nowMs + 40_000);
    stage.later(39_999).slot();
    assert.equal(stage.state.phase, 'running');
    stage.later(1).slot();
    assert.deepEqual([stage.state.phase, stage.record.lastOutcome?.reason], ['idle', 'LeaseOver']);
  });

  it('keeps the previous credential after a refresh, and both end with the run', () => {
    const stage = accepted().handle({
      kind: 'heartbeat',
      leaseMs: 60_000,
      credential: { id: 'JTI=new', expiresAtMs: 0 },
    });
    assert.deepEqual([stage.record.credentialId, stage.record.previousCredential?.id], ['JTI=new', 'JTI=1']);
    stage.outcome({ outcome: 'Done' });
    assert.deepEqual([stage.record.credentialId, stage.record.previousCredential], [undefined, undefined]);
    assert.equal(stage.kinds.includes('endpoint'), false);
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
    const { next } = stage.slot().effect('start');
    assert.deepEqual([next.operation, next.seq], ['delete', 2]);
  });

  it('revokes the credential of an active run, waits for its end, then deletes', () => {
    const stage = deleting(new StepStage().running());
    assert.equal(seen(stage), 'draining store reportStatus');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Running', undefined]);
    stage.later(500).outcome({ outcome: 'Done', outputs: { network: { vnetName: 'late' } } });
    assert.deepEqual([stage.state.phase, stage.kinds.includes('apply')], ['queued', false]);
    assert.equal(stage.slot().effect('start').next.operation, 'delete');
  });

  it('deletes after the deadline of a silent run', () => {
    const stage = deleting(new StepStage().running()).later(10_000);
    stage.slot();
    assert.equal(stage.slot().effect('start').next.operation, 'delete');
  });

  it('completes a pending write of outputs first', () => {
    const stage = deleting(new StepStage().running().outcome({ outcome: 'Done', outputs: { network: {} } }));
    assert.equal(stage.state.phase, 'applying');
    stage.later(500).handle({ kind: 'applied', problem: undefined, inputs: stage.inputs });
    assert.equal(stage.slot().effect('start').next.operation, 'delete');
  });

  it('removes outputs and record after Deleted', () => {
    const stage = deleting(new StepStage().done()).slot().started();
    const base = stage.state.stored;
    stage.outcome({ outcome: 'Deleted' });
    assert.equal(seen(stage), 'gone endpoint retire reportStatus');
    assert.equal(stage.effect('retire').base, base);
  });

  it('runs a component again when the one that it waits for is gone', () => {
    const stage = deleting(new StepStage().done()).slot().started();
    stage.outcome({ outcome: 'NotReady', missing: [{ path: '/status/outputs/cluster', want: 'absent' }] });
    assert.equal(stage.state.phase, 'idle');
    stage.later(500).see({ arrived: true }).trigger('InputChanged').slot();
    assert.equal(stage.effect('start').next.operation, 'delete');
  });

  for (const [what, stage] of [
    ['is idle', () => new StepStage().done()],
    ['is running', () => new StepStage().running()],
  ] as const) {
    it(`does not wait for an abandoned component that ${what}`, () => {
      const abandoned = stage().see({ mayRun: { may: 'no', why: 'Abandoned' } });
      abandoned.handle({ kind: 'deleting', inputs: abandoned.inputs });
      assert.deepEqual([abandoned.state.phase, abandoned.kinds.includes('retire')], ['gone', true]);
    });
  }
});

describe('a record from the store', () => {
  const record = new StepStage().running().record;
  const found = (stage: StepStage, rest: Partial<typeof record>): StepStage =>
    stage.handle({
      kind: 'recordChanged',
      stored: { record: { ...record, ...rest }, resourceVersion: 'f' },
      inputs: stage.inputs,
    });
  const at = (ms: number): number => new StepStage().nowMs + ms;

  it('of a synchronous run: ends it as if its deadline had passed', () => {
    const stage = found(new StepStage(), { phase: 'Running' });
    assert.deepEqual([seen(stage), stage.record.attempt], ['idle store reportStatus enqueue', 1]);
    assert.equal(stage.record.credentialId, undefined);
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

  for (const [leaseMs, expected] of [
    [-300_000, 10_000],
    [300_000, 60_000],
  ] as const) {
    it(`of an asynchronous run with a deadline in ${leaseMs} ms on another clock: ${expected} ms on ours`, () => {
      const stage = found(new StepStage(), { asynchronous: true, deadlineMs: at(leaseMs) });
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
      .slot()
      .started();
    stage.handle({ kind: 'notAccepted', retryAfterMs: 60_000, inputs: stage.inputs });
    const { record: released } = stage;
    assert.equal(found(new StepStage(), { ...released, nextAtMs: at(60_000) }).effect('enqueue').delayMs, 60_000);
    assert.equal(found(new StepStage(), { ...released, nextAtMs: at(1e12) }).effect('enqueue').delayMs, 5 * minute);
  });

  it('with another digest: is queued after urgent keys', () => {
    const stage = found(new StepStage(), { phase: 'Idle', credentialId: undefined, inputsDigest: 'old' });
    assert.deepEqual([stage.state.phase, stage.effect('enqueue').lane], ['queued', lanes.input]);
  });

  it('of a run that started long ago on another clock: the next start is still 200 ms after our last', () => {
    const stage = found(new StepStage().running(), { seq: 2, startedAtMs: at(-310_000) });
    stage.slot().see({ digest: 'b' });
    stage.later(100).trigger('InputChanged');
    assert.ok((stage.state.lastStart ?? 0) >= stage.monotonicMs - 100);
  });

  it('older than the known one: is ignored', () => {
    const stage = new StepStage().done();
    const before = stage.state;
    found(stage, { phase: 'Running' });
    assert.deepEqual([stage.state, stage.kinds], [before, []]);
  });

  it('of a later run: replaces ours', () => {
    const stage = found(new StepStage().running(), { seq: 2, asynchronous: true, deadlineMs: at(30_000) });
    assert.equal(stage.record.seq, 2);
    stage.outcome({ outcome: 'Done' }, undefined, 1);
    assert.deepEqual([stage.state.phase, stage.kinds], ['running', []]);
  });

  it('that was deleted while the entry exists: resets the key', () => {
    const stage = new StepStage().done().handle({ kind: 'recordChanged', stored: undefined, inputs: inputsOf() });
    assert.deepEqual([stage.state.phase, reasons(stage)], ['queued', ['Created']]);
  });

  it('during a start: is ignored until the start completes', () => {
    const stage = new StepStage().done().trigger('Forced').slot();
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

describe('inputs that keep returning', () => {
  it('are reported once by path, slowed down, and reported again when they settle', () => {
    const stage = new StepStage().running();
    const turn = (digest: string): void => {
      stage.outcome({ outcome: 'Done' }).see({ digest });
      stage.trigger('InputChanged', { about: '/status/outputs/cluster/cidr' });
      stage.later(stage.effect('enqueue').delayMs).slot().started();
    };
    let warned = 0;
    const begin = stage.monotonicMs;
    for (let i = 0; i < 60; i += 1) {
      turn(i % 2 ? 'a' : 'b');
      if (stage.kinds.includes('warn')) {
        warned += 1;
        assert.match(stage.effect('warn').message, /\/status\/outputs\/cluster\/cidr/);
        assert.ok(stage.effect('reportStatus').status.livelock);
      }
    }
    assert.equal(warned, 1);
    assert.ok(stage.monotonicMs - begin > 20 * minute, 'slowed down');
    stage.outcome({ outcome: 'Done' }).later(hour).trigger('Forced').slot().started();
    assert.equal(stage.effect('reportStatus').status.livelock, undefined);
  });

  it('do not include repeated retries and intervals', () => {
    const stage = new StepStage().running();
    for (let i = 0; i < 30; i += 1) {
      stage.outcome({ outcome: 'Retry' }).later(200).trigger('Forced').slot().started();
      assert.equal(stage.kinds.includes('warn'), false);
    }
  });
});
