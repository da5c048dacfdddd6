import assert from 'node:assert/strict';
import type { Outcome } from '../../../../src/api/inventory/contract/outcome.ts';
import { runObject } from '../../../../src/inventory/stores/run-object.ts';
import { valueAt } from '../../../../src/kit/json-pointer.ts';
import { nextInMs, notReady, reasons, StepStage, seen } from '../../../support/inventory/step-stage.ts';

const minute = 60_000;
const hour = 60 * minute;

describe('a running key', () => {
  it('keeps a trigger', () => {
    const stage = new StepStage().running().trigger('Remote');
    assert.deepEqual([stage.state.phase, stage.state.pending?.triggers.length, stage.kinds], ['running', 1, []]);
  });

  it('stores, writes outputs, then finishes', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Done', outputs: { network: { vnetName: 'v' } } });
    assert.equal(seen(stage), 'applying recordCallResult store apply');
    assert.deepEqual([stage.record.phase, stage.record.credentialId], ['Applying', undefined]);
    stage.handle({ kind: 'applied', problem: undefined, inputs: stage.inputs });
    assert.equal(seen(stage), 'idle store reportStatus enqueue');
    assert.equal(stage.record.lastOutcome?.outcome, 'Done');
  });

  for (const [code, outcome] of [
    ['ForeignPath', 'Failed'],
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
      assert.equal(seen(stage), 'idle recordCallResult store reportStatus enqueue');
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
      assert.equal(stage.dequeued().state.phase, 'starting');
    });
  }

  it('handles many triggers in one run', () => {
    const stage = new StepStage().running().see({ digest: 'b' });
    for (let i = 0; i < 20; i += 1) stage.trigger('InputChanged', { detail: `/spec/cluster/${i}` }).trigger('Remote');
    stage.later(500).outcome({ outcome: 'Done' }).dequeued().started();
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

  it('gives InputArrived as a reason only if the missing inputs hold', () => {
    const missing = [{ path: '/status/outputs/vault/size', want: 'equals', value: 7 }] as const;
    const stage = new StepStage().running().outcome({ outcome: 'NotReady', missing }).later(500);
    const changeSize = (digest: string, arrived: boolean) =>
      stage
        .see({ digest, arrived })
        .trigger('InputChanged', { detail: '/status/outputs/vault' })
        .trigger('InputArrived', { detail: '/status/outputs/vault/size' })
        .dequeued();
    changeSize('b', false);
    assert.deepEqual(stage.effect('start').next.reasons, ['InputChanged:/status/outputs/vault']);
    stage.started().outcome({ outcome: 'NotReady', missing }).later(500);
    changeSize('c', true);
    assert.deepEqual(stage.effect('start').next.reasons, [
      'InputChanged:/status/outputs/vault',
      'InputArrived:/status/outputs/vault/size',
    ]);
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
          .dequeued()
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
      stage.later(nextInMs(stage)).dequeued();
      assert.deepEqual(stage.effect('start').next.reasons, ['Retry']);
      stage.started();
    }
    assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    stage.outcome({ outcome: 'Done' });
    assert.equal(stage.record.attempt, 0);
  });

  it('skips its backoff for changed inputs, and resets its attempts', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' }).later(300).see({ digest: 'b' });
    stage.trigger('InputChanged').dequeued();
    assert.deepEqual([stage.state.phase, stage.effect('start').next.attempt], ['starting', 0]);
  });

  for (const [what, event] of [
    ['the deadline passed', { kind: 'dequeued' }],
    ['the answer is invalid', { kind: 'callFailed', code: 'NotJson', message: 'x' }],
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
    stage.dequeued();
    assert.equal(stage.state.phase, 'running');
  });

  it('is queued again if it was not accepted, as a failed run with the same reasons', () => {
    const stage = new StepStage().done().see({ digest: 'b' }).trigger('InputChanged', { detail: '/spec/mode' });
    stage.dequeued().started().unreachable(7000);
    assert.equal(seen(stage), 'queued recordCallResult store enqueue reportStatus');
    assert.deepEqual([stage.effect('recordCallResult').verdict, stage.effect('enqueue').delayMs], ['failed', 7000]);
    const { seq, attempt, inputsDigest, credentialId, phase, lastOutcome } = stage.record;
    assert.deepEqual([seq, attempt, inputsDigest, credentialId, phase], [2, 1, 'b', undefined, 'Idle']);
    assert.deepEqual(
      [lastOutcome?.seq, lastOutcome?.outcome, lastOutcome?.reason, lastOutcome?.message],
      [2, 'Retry', 'Unreachable', 'refused'],
    );
    assert.deepEqual([stage.state.status?.state, stage.state.status?.reason], ['Retrying', 'Unreachable']);
    const { next } = stage.later(7000).dequeued().effect('start');
    assert.deepEqual([next.seq, next.reasons[0]], [3, 'InputChanged:/spec/mode']);
  });

  const untilAccepted = 'once the endpoint accepts calls; probed again within 30 s';
  for (const [what, code, retryAfterMs, probeDelayMs, heldBy, next] of [
    ['the endpoint, if it is unreachable', 'Unreachable', undefined, undefined, 'Unreachable', untilAccepted],
    ['the endpoint, if the component is busy', 'Busy', undefined, undefined, 'Unreachable', untilAccepted],
    ['the time in Retry-After', 'Busy', 90_000, undefined, undefined, 'at 2026-11-21T09:01:30Z or earlier'],
    ['a Retry-After after the next probe', 'Busy', 90_000, 30_000, undefined, 'at 2026-11-21T09:01:30Z or earlier'],
    ['the endpoint, if the next probe is after Retry-After', 'Busy', 1000, 4000, 'Unreachable', untilAccepted],
  ] as const) {
    it(`waits for ${what}, which the write of its end records`, () => {
      const stage = new StepStage().running();
      const nextText = () => valueAt(runObject(stage.record), '/spec/next');
      stage.handle({ kind: 'notAccepted', code, message: 'found', retryAfterMs, probeDelayMs, inputs: stage.inputs });
      assert.equal(stage.kinds.filter((kind) => kind === 'store').length, 1);
      assert.deepEqual([stage.record.heldBy, nextText()], [heldBy, next]);
      stage.trigger('Remote');
      assert.deepEqual([stage.kinds.includes('store'), nextText()], [false, next]);
      stage.later(retryAfterMs ?? 1000).handle({ kind: 'endpointUnavailable', inputs: stage.inputs });
      assert.deepEqual([stage.record.heldBy, nextText()], ['Unreachable', untilAccepted]);
      assert.equal(stage.kinds.includes('store'), heldBy === undefined);
      stage.dequeued();
      assert.equal(stage.effect('start').next.heldBy, undefined);
    });
  }

  it('counts calls that were not accepted, and keeps them in its history', () => {
    const stage = new StepStage().running();
    for (const attempt of [1, 2, 3]) {
      stage.unreachable();
      assert.equal(stage.record.attempt, attempt);
      stage.later(1000).dequeued().started();
    }
    assert.deepEqual(
      stage.record.history.map(({ seq, outcome, reason }) => [seq, outcome, reason]),
      [3, 2, 1].map((seq) => [seq, 'Retry', 'Unreachable']),
    );
    stage.random = 0.999_999;
    stage.outcome({ outcome: 'Retry' });
    assert.deepEqual([stage.record.attempt, Math.round(nextInMs(stage) / 1000)], [1, 1], 'as the first Retry');
  });

  it('ends the count of calls that were not accepted with the first accepted run, whatever its outcome', () => {
    const stage = new StepStage().running();
    for (let call = 0; call < 20; call += 1) {
      stage.unreachable();
      stage.later(nextInMs(stage)).dequeued().started();
    }
    assert.equal(stage.record.attempt, 20);
    stage.outcome({ outcome: 'Progressing', requeueAfterSeconds: 10 });
    assert.equal(stage.record.attempt, 0);
    stage.later(nextInMs(stage)).dequeued().started();
    stage.random = 0.999_999;
    stage.outcome({ outcome: 'Retry' });
    assert.deepEqual([stage.record.attempt, Math.round(nextInMs(stage) / 1000)], [1, 1], 'as the first Retry');
  });

  it('counts a run that was not accepted apart from its retries', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Retry' });
    stage.later(nextInMs(stage)).dequeued().started().unreachable();
    assert.equal(stage.record.attempt, 1);
  });

  it('waits an hour after Failed, despite remote events', () => {
    const stage = new StepStage().running().outcome({ outcome: 'Failed', message: 'no such region' }).later(500);
    assert.deepEqual([stage.state.phase, stage.record.attempt], ['idle', 0]);
    assert.equal(Math.round((nextInMs(stage) + 500) / minute), 60);
    assert.equal(stage.trigger('Remote').state.phase, 'idle');
    assert.equal(stage.trigger('Forced').state.phase, 'queued');
  });

  for (const [what, outcome, found] of [
    ['a message', { outcome: 'Failed', message: 'no such region' }, 'no such region; '],
    ['no message', { outcome: 'Failed' }, ''],
  ] as const) {
    it(`says how to repeat a Failed run with ${what}`, () => {
      const { status } = new StepStage().running().outcome(outcome).effect('reportStatus');
      assert.equal(
        status.message,
        `${found}annotate the entry with force.inventory.drawbridge.dev/network=NEW-VALUE to repeat the run`,
      );
    });
  }

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
      stage.trigger('Forced').dequeued().started().outcome({ outcome });
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
    for (let i = 0; i < 12; i += 1)
      stage.trigger('Forced').dequeued().started().outcome({ outcome: 'Done' }).later(500);
    const { history, lastOutcome } = stage.record;
    assert.deepEqual([lastOutcome?.seq, history.length, history[0]?.seq, history[9]?.seq], [13, 10, 12, 3]);
  });
});

describe('an asynchronous run', () => {
  const accepted = (): StepStage => new StepStage({ maxRunMs: 90_000 }).running().accepted();

  it('shows that it runs, if it is the first of its component', () => {
    const { status } = accepted().effect('reportStatus');
    assert.deepEqual(
      [status.state, status.reason, status.message],
      ['Progressing', 'Running', 'running since 2026-11-21T09:00:00Z'],
    );
  });

  it('shows as its next run when it ends without a report', () => {
    const stage = accepted();
    const nextText = () => valueAt(runObject(stage.record), '/spec/next');
    assert.equal(nextText(), 'once the current run ends; without a report, at about 2026-11-21T09:01:00Z');
    stage.see({ digest: 'b' }).later(20_000).heartbeat();
    assert.equal(nextText(), 'once the current run ends; without a report, at about 2026-11-21T09:01:20Z');
  });

  /** A second run, which answers 202, after the outcome. The inputs may differ from those of the first run. */
  const acceptedAfter = (outcome: Outcome, digest = 'b'): StepStage => {
    const stage = new StepStage().running().outcome(outcome).later(1000).see({ digest }).trigger('Forced');
    return stage.dequeued().started().accepted();
  };

  for (const [last, outcome] of [
    ['waits for /status/outputs/cluster/endpoint', notReady],
    ['Failed: no such region', { outcome: 'Failed', message: 'no such region' }],
    ['Retry: provider 502', { outcome: 'Retry', message: 'provider 502' }],
    ['Progressing: 3 of 5 nodes', { outcome: 'Progressing', requeueAfterSeconds: 15, message: '3 of 5 nodes' }],
  ] as const) {
    it(`shows that it runs, and as the last outcome: ${last}`, () => {
      const stage = acceptedAfter(outcome);
      const { state, reason, message, missing } = stage.effect('reportStatus').status;
      assert.deepEqual(
        [state, reason, message, missing],
        ['Progressing', 'Running', `running since 2026-11-21T09:00:01Z; last outcome: ${last}`, []],
      );
      stage.later(1000).heartbeat();
      assert.equal(stage.kinds.includes('reportStatus'), false, 'a heartbeat costs no write');
    });
  }

  for (const [what, outcome, digest, expected] of [
    ['that a run was forced since Done', { outcome: 'Done' }, 'b', ['Progressing', 'Forced']],
    ['Done for the same inputs', { outcome: 'Done' }, 'a', ['Done', undefined]],
    ['Progressing, same inputs', { outcome: 'Progressing', requeueAfterSeconds: 15 }, 'a', ['Progressing', undefined]],
  ] as const) {
    it(`leaves a status that stays true: ${what}`, () => {
      const stage = acceptedAfter(outcome, digest);
      assert.equal(stage.kinds.includes('reportStatus'), false);
      assert.deepEqual([stage.state.status?.state, stage.state.status?.reason], expected);
    });
  }

  it('shows that it runs although its entry is suspended, and then its last outcome', () => {
    const stage = accepted().suspend().trigger('ConfigChanged');
    assert.equal(stage.state.status?.reason, 'Running');
    const { status } = stage.outcome({ outcome: 'Retry', message: 'provider 502' }).effect('reportStatus');
    assert.deepEqual(
      [status.state, status.reason, status.message],
      ['Suspended', 'Suspended', 'last outcome: Retry: provider 502'],
    );
  });

  it('stores its deadline', () => {
    const stage = accepted();
    assert.equal(seen(stage), 'running recordCallResult store enqueue reportStatus');
    assert.deepEqual([stage.record.asynchronous, stage.record.deadlineMs], [true, stage.nowMs + 60_000]);
  });

  it('stores its deadline only if it grew by a tenth, however often it reports', () => {
    const stage = accepted();
    let stored = 0;
    for (let i = 0; i < 20; i++) {
      stage.later(1000).heartbeat();
      assert.equal(stage.state.deadlineAt, stage.monotonicMs + 60_000);
      stored += stage.kinds.filter((kind) => kind === 'store').length;
    }
    assert.equal(stored, 3);
    stage.heartbeat(60_000, { id: 'JTI=2', expiresAtMs: 0 });
    assert.ok(stage.kinds.includes('store'));
  });

  it('is extended by each heartbeat up to its maximum duration', () => {
    const stage = accepted().later(50_000).heartbeat();
    assert.equal(stage.record.deadlineMs, stage.nowMs + 40_000);
    stage.later(39_999).dequeued();
    assert.equal(stage.state.phase, 'running');
    stage.later(1).dequeued();
    assert.deepEqual([stage.state.phase, stage.record.lastOutcome?.reason], ['idle', 'LeaseOver']);
    assert.equal(
      stage.record.lastOutcome?.message,
      'the component reported no valid outcome within spec.maxRunSeconds of ComponentReconciler network, 90 s; the component must POST the outcome to callback of the call; a report that was answered 401 or 403 does not count: check the answers in the log of the component; if its work takes longer, increase the field',
    );
  });

  it('names its maximum duration although the sum of its deadline is rounded down', () => {
    const stage = new StepStage({ maxRunMs: 10_000 });
    stage.monotonicMs = 56_559.903;
    stage.running().later(639.826).accepted(3_600_000);
    assert.ok((stage.state.deadlineAt ?? 0) - 56_559.903 < 10_000);
    stage.later(10_000).dequeued();
    assert.match(stage.record.lastOutcome?.message ?? '', / within spec\.maxRunSeconds /);
  });

  it('ends at its heartbeat timeout without a report, which it names, and says how to extend it', () => {
    const text = (seconds: number) =>
      `the component reported no valid outcome or heartbeat within its heartbeat timeout (leaseSeconds, ${seconds} s); the component must POST the outcome to callback of the call, and until then heartbeats in time, or with more leaseSeconds, which extend a run up to spec.maxRunSeconds of ComponentReconciler network, 90 s; a report that was answered 401 or 403 does not count: check the answers in the log of the component`;
    const stage = accepted().later(60_000).dequeued();
    assert.equal(stage.record.lastOutcome?.message, text(60));
    stage.later(nextInMs(stage)).dequeued().started().accepted(30_000).heartbeat(5000);
    stage.later(5000).dequeued();
    assert.equal(stage.record.lastOutcome?.message, text(5));
  });

  it('shows its first rejected report until a heartbeat, warns once, and names the last one at its deadline', () => {
    const stage = accepted().later(1000);
    const reject = (code: 'InvalidReport' | 'TooLarge') =>
      stage.handle({ kind: 'reportRejected', code, inputs: stage.inputs });
    const { message } = reject('InvalidReport').effect('warn');
    assert.equal(
      message,
      'the server rejected a report of the component (InvalidReport); the HTTP answer to the component has the cause: check the log of the component',
    );
    assert.equal(
      stage.effect('reportStatus').status.message,
      'running since 2026-11-21T09:00:00Z; report rejected (InvalidReport) at 2026-11-21T09:00:01Z, see the log of the component',
    );
    for (let i = 0; i < 10; i += 1) assert.deepEqual(reject('TooLarge').effects, []);
    stage.heartbeat();
    assert.equal(stage.effect('reportStatus').status.message, 'running since 2026-11-21T09:00:00Z');
    assert.deepEqual(reject('TooLarge').effects, []);
    stage.later(60_000).dequeued();
    assert.match(
      stage.record.lastOutcome?.message ?? '',
      /; its last report was rejected \(TooLarge\); the component must POST the outcome .*; check its log$/,
    );
    assert.deepEqual(reject('TooLarge').effects, []);
    stage.later(nextInMs(stage)).dequeued().started();
    assert.equal(reject('InvalidReport').effect('warn').code, 'ReportRejected');
  });

  it('keeps the previous credential after a refresh, and both end with the run', () => {
    const stage = accepted().heartbeat(60_000, { id: 'JTI=new', expiresAtMs: 0 });
    assert.deepEqual([stage.record.credentialId, stage.record.previousCredential?.id], ['JTI=new', 'JTI=1']);
    stage.outcome({ outcome: 'Done' });
    assert.deepEqual([stage.record.credentialId, stage.record.previousCredential], [undefined, undefined]);
    assert.equal(stage.kinds.includes('recordCallResult'), false);
  });
});

describe('the status of a component whose entry is suspended', () => {
  for (const [message, outcome] of [
    ['last outcome: waits for /status/outputs/cluster/endpoint', notReady],
    ['last outcome: Failed: no such region', { outcome: 'Failed', message: 'no such region' }],
    ['last outcome: Retry: provider 502', { outcome: 'Retry', message: 'provider 502' }],
    ['a run is due', { outcome: 'Done' }],
  ] as const) {
    it(`says that no run follows: ${message}`, () => {
      const stage = new StepStage().running().outcome(outcome).later(1000);
      const mayRun = { may: 'no', why: 'Suspended' } as const;
      const { status } = stage.see({ digest: 'b', mayRun }).trigger('ConfigChanged').effect('reportStatus');
      assert.deepEqual([status.state, status.reason, status.message], ['Suspended', 'Suspended', message]);
    });
  }

  it('is not Deleting after its teardown failed, and the entry was suspended', () => {
    const stage = new StepStage().tearingDown();
    stage.outcome({ outcome: 'Failed', message: 'account locked' });
    assert.equal(stage.state.status?.state, 'Deleting');
    const { status } = stage.suspend().trigger('ConfigChanged').effect('reportStatus');
    assert.deepEqual([status.state, status.message], ['Suspended', 'last outcome: Failed: account locked']);
  });

  it('stays Done for the same inputs', () => {
    const stage = new StepStage().done().suspend().trigger('ConfigChanged');
    assert.deepEqual([stage.state.status?.state, stage.state.status?.reason], ['Done', undefined]);
  });
});

describe('the status of a teardown', () => {
  const tornDown = (outcome: Outcome): StepStage => new StepStage().tearingDown().outcome(outcome);

  for (const [reason, message, outcome] of [
    [
      'Failed',
      'AccountLocked; annotate the entry with force.inventory.drawbridge.dev/network=NEW-VALUE to repeat the teardown, or with abandon.inventory.drawbridge.dev/network=REASON to finish without it',
      { outcome: 'Failed', message: 'AccountLocked' },
    ],
    ['Retry', 'provider 502', { outcome: 'Retry', message: 'provider 502' }],
    ['Progressing', '3 zones left', { outcome: 'Progressing', requeueAfterSeconds: 15, message: '3 zones left' }],
    ['NotReady', undefined, notReady],
  ] as const) {
    it(`is Deleting, with the outcome ${reason} as its reason`, () => {
      const { status } = tornDown(outcome).effect('reportStatus');
      assert.deepEqual([status.state, status.reason, status.message], ['Deleting', reason, message]);
    });
  }

  it('says what to do if the component waits for what already holds', () => {
    const stage = new StepStage().tearingDown().later(500);
    const outcome: Outcome = { outcome: 'NotReady', missing: [{ path: '/status/outputs/network', want: 'noReaders' }] };
    stage.outcome(outcome, { heldAtStart: true, holdsNow: true });
    const { status } = stage.effect('reportStatus');
    assert.deepEqual(
      [status.state, status.reason, status.message],
      [
        'Deleting',
        'MissingAlreadySatisfied',
        'while other objects use what the component created, the component must answer Retry instead of NotReady; to finish without the teardown, annotate the entry with abandon.inventory.drawbridge.dev/network=REASON',
      ],
    );
  });
});

describe('inputs that keep returning', () => {
  it('are reported once by path, slowed down, and reported again when they settle', () => {
    const stage = new StepStage().running();
    const turn = (digest: string): void => {
      stage.outcome({ outcome: 'Done' }).see({ digest });
      stage.trigger('InputChanged', { detail: '/status/outputs/cluster/cidr' });
      stage.later(stage.effect('enqueue').delayMs).dequeued().started();
    };
    let warned = 0;
    const begin = stage.monotonicMs;
    for (let i = 0; i < 60; i += 1) {
      turn(i % 2 ? 'a' : 'b');
      if (stage.kinds.includes('warn')) {
        warned += 1;
        assert.match(stage.effect('warn').message, /; changes of \/status\/outputs\/cluster\/cidr started the last /);
        assert.ok(stage.effect('reportStatus').status.livelock);
      }
    }
    assert.equal(warned, 1);
    assert.ok(stage.monotonicMs - begin > 20 * minute, 'slowed down');
    stage.outcome({ outcome: 'Done' }).later(hour).trigger('Forced').dequeued().started();
    assert.equal(stage.effect('reportStatus').status.livelock, undefined);
  });

  it('do not include the watched objects whose changes arrived with them', () => {
    const stage = new StepStage().running();
    let message = '';
    for (let i = 0; i < 60; i += 1) {
      stage.outcome({ outcome: 'Done' }).see({ digest: i % 2 ? 'a' : 'b' });
      stage.trigger('InputChanged', { detail: '/status/outputs/cluster/cidr' });
      stage.trigger('Remote', { detail: 'managed/services.example.org' });
      stage.later(stage.effect('enqueue').delayMs).dequeued().started();
      if (stage.kinds.includes('warn')) message = stage.effect('warn').message;
    }
    assert.match(message, /; changes of \/status\/outputs\/cluster\/cidr started the last of them; /);
  });

  it('do not include repeated retries and intervals', () => {
    const stage = new StepStage().running();
    for (let i = 0; i < 30; i += 1) {
      stage.outcome({ outcome: 'Retry' }).later(200).trigger('Forced').dequeued().started();
      assert.equal(stage.kinds.includes('warn'), false);
    }
  });
});
