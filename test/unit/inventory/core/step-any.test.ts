import assert from 'node:assert/strict';
import type { Outcome } from '../../../../src/api/inventory/contract/outcome.ts';
import type { Inputs, KeyEvent } from '../../../../src/inventory/core/key-state.ts';
import type { RunRecord, StoredRecord } from '../../../../src/inventory/core/run-record.ts';
import { trigger, triggerReasons } from '../../../../src/inventory/core/triggers.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';
import { inputsOf, notReady, StepStage } from '../../../support/inventory/step-stage.ts';
import { chooseSeed, seededRandom } from '../../../support/random.ts';
import { runs } from '../../../support/runs.ts';

const walks = runs(1000);
const steps = 60;
/** The latest instant that a record can have. */
const latest = Date.parse('9999-12-31T23:59:59Z');
/** Fixed seed unless DRAWBRIDGE_SEED is set. */
const seed = chooseSeed(20261122);

describe(`any event in any state, from DRAWBRIDGE_SEED=${seed}`, () => {
  it('yields a state and never an error, mutates no argument, and keeps finished runs unchanged', () => {
    for (let walk = 0; walk < walks; walk += 1) {
      const random = seededRandom(seed + walk);
      const stage = new StepStage();
      let known: StoredRecord | undefined;
      for (let i = 0; i < steps; i += 1) {
        stage.later(random() < 0.2 ? random() * 100_000 : random() * 300);
        stage.random = random();
        const before = deepFreeze(stage.state);
        known = stage.state.stored ?? known;
        const event = anyEvent(random, stage, known);
        stage.handle(deepFreeze(event));
        const [was, is] = [before.stored?.record, stage.state.stored?.record];
        if (event.kind === 'recordChanged' || event.kind === 'conflict' || event.kind === 'started') continue;
        const about = `seed ${seed + walk}: ${event.kind} in ${before.phase}`;
        if (was?.lastOutcome && is?.lastOutcome?.seq === was.lastOutcome.seq) {
          assert.equal(is.lastOutcome, was.lastOutcome, about);
        }
        const hasCredential = is?.credentialId !== undefined || is?.previousCredential !== undefined;
        assert.ok(!hasCredential || is?.phase === 'Running', `I1: a credential outlives its run, ${about}`);
        assert.ok(!stage.kinds.includes('call'), about);
        assert.ok(is === undefined || was === undefined || is.seq >= was.seq, about);
      }
    }
  });
});

/** An active run may have two credentials after a refresh. */
function credentialsOf(
  random: () => number,
  phase: RunRecord['phase'],
): Pick<RunRecord, 'credentialId' | 'previousCredential'> {
  if (phase !== 'Running' || random() < 0.3) return { credentialId: undefined, previousCredential: undefined };
  const previous = random() < 0.5 ? { id: 'JTI=before', expiresAtMs: 0 } : undefined;
  return { credentialId: 'JTI=now', previousCredential: previous };
}

function anyEvent(random: () => number, stage: StepStage, known: StoredRecord | undefined): KeyEvent {
  const oneOf = <T>(...items: readonly [T, ...T[]]): T => items[Math.floor(random() * items.length)] ?? items[0];
  const inputs: Inputs = inputsOf({
    digest: oneOf('a', 'b', 'c'),
    arrived: random() < 0.5,
    mayRun: oneOf<Inputs['mayRun']>(
      { may: 'reconcile' },
      { may: 'reconcile' },
      { may: 'delete' },
      { may: 'no', why: oneOf('Suspended', 'Abandoned', 'TooLarge', 'NotApplicable') },
    ),
  });
  const outcome = oneOf<Outcome>(
    { outcome: 'Done' },
    { outcome: 'Done', outputs: { network: {} } },
    notReady,
    { outcome: 'Progressing', requeueAfterSeconds: random() * 100_000 },
    { outcome: 'Retry' },
    { outcome: 'Failed', message: 'x'.repeat(3000) },
    { outcome: 'Deleted' },
  );
  const missing = { heldAtStart: random() < 0.5, holdsNow: random() < 0.5 };
  const start = stage.effects.find((effect) => effect.kind === 'start');
  const record: RunRecord | undefined = start?.next ?? known?.record;
  const seq = (record?.seq ?? 0) + oneOf(0, 0, 1);
  const phase = oneOf<RunRecord['phase']>('Idle', 'Running', 'Applying');
  const stored = record && {
    record: {
      ...record,
      seq,
      phase,
      // An active run has not ended.
      lastOutcome: phase === 'Idle' || record.lastOutcome?.seq !== seq ? record.lastOutcome : undefined,
      ...credentialsOf(random, phase),
      asynchronous: random() < 0.5,
      nextAtMs: oneOf(undefined, 0, stage.nowMs, latest),
      deadlineMs: oneOf(undefined, 0, stage.nowMs + 5000, latest),
    },
    resourceVersion: `r${random()}`,
  };
  return oneOf<KeyEvent>(
    { kind: 'trigger', trigger: trigger(oneOf('Created', ...Object.values(triggerReasons))), inputs },
    { kind: 'dequeued', inputs },
    { kind: 'dequeued', inputs },
    start && stored
      ? { kind: 'started', stored: { ...stored, record: start.next }, inputs }
      : { kind: 'dequeued', inputs },
    { kind: 'conflict', stored: random() < 0.8 ? stored : undefined, inputs },
    { kind: 'recordChanged', stored: random() < 0.8 ? stored : undefined, inputs },
    { kind: 'accepted', heartbeatTimeoutMs: random() * 100_000, inputs },
    {
      kind: 'heartbeat',
      heartbeatTimeoutMs: random() * 100_000,
      credential: oneOf(undefined, { id: 'JTI=x', expiresAtMs: 0 }),
      inputs,
    },
    { kind: 'reportRejected', code: oneOf('InvalidReport', 'TooLarge'), inputs },
    { kind: 'outcome', seq: (record?.seq ?? 1) + oneOf(0, 0, 0, -1, 1), outcome, inputs, missing },
    { kind: 'applied', problem: oneOf(undefined, { code: 'ForeignPath', message: 'no' }), inputs },
    { kind: 'callFailed', code: 'NotJson', message: 'x', inputs },
    {
      kind: 'notAccepted',
      code: 'Busy',
      message: 'x',
      retryAfterMs: oneOf(undefined, -5, 1e12),
      probeDelayMs: oneOf(undefined, 0, 30_000),
      inputs,
    },
    { kind: 'notCalled', retryAfterMs: oneOf(undefined, -5, 1e12), inputs },
    { kind: 'deleting', inputs },
    { kind: 'dequeued', inputs },
  );
}
