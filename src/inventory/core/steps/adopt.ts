import { isDeepStrictEqual } from 'node:util';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Inputs, KeyEventOf } from '../step.ts';
import { clockSlackMs, graceMs, longestDelayMs, unstoredShare, wakeReason } from '../timing.ts';
import { type Lane, lanes } from '../triggers.ts';
import { goneFor, onDeleting } from './drain.ts';
import { loseRun } from './running.ts';
import type { Transition } from './transition.ts';
import { atOnce, newsOf } from './wanted.ts';

/** The record as somebody else has left it: at start, or by another process meanwhile. */
export function onFound(turn: Transition, { stored, inputs }: KeyEventOf<'found'>): void {
  const { phase, stored: known } = turn.state;
  // The answer to our own write says more.
  if (phase === 'starting') return;
  if (phase === 'gone' && !stored) {
    turn.become({ stored: undefined });
    return;
  }
  if (stored && known && !isLater(stored, known)) return;
  adopt(turn, stored, inputs, known === undefined);
}

/** A write of ours came second. What was to follow from it was not done. */
export function onConflict(turn: Transition, { stored, inputs }: KeyEventOf<'conflict'>): void {
  const { phase, stored: known, doing } = turn.state;
  if (phase === 'starting') {
    turn.become({ doing: undefined });
    turn.want(...(doing?.triggers ?? []).map(atOnce));
    adopt(turn, stored, inputs, false);
  } else if (!stored || !known || stored.record.seq !== known.record.seq) {
    adopt(turn, stored, inputs, false);
  } else if (phase === 'gone' && stored.record.phase !== 'Idle') {
    turn.do({ kind: 'retire', base: stored, ended: undefined });
    turn.become({ stored });
  } else if (stored.record.phase !== 'Idle') {
    // Of our own run nobody else has anything to say: what is to be stored still is.
    turn.store(known.record, stored);
    goOn(turn, inputs);
  } else if (known.record.phase === 'Idle' && isDeepStrictEqual(stored.record.lastOutcome, known.record.lastOutcome)) {
    // It was ours, and the answer to it got lost.
    turn.become({ stored });
    goOn(turn, inputs);
  } else {
    // Somebody has ended it before us, and that cannot change any more.
    adopt(turn, stored, inputs, false);
  }
}

function goOn(turn: Transition, inputs: Inputs): void {
  const { phase, outcome } = turn.state;
  if (phase === 'applying' && outcome?.outputs) turn.do({ kind: 'apply', outputs: outcome.outputs });
  else if (phase === 'running' || phase === 'draining') turn.awaitLease();
  else turn.settle(inputs);
  turn.report(inputs, true);
}

const progress = ({ phase }: RunRecord): number => ['Running', 'Applying', 'Idle'].indexOf(phase);

/** Whether it says something that is not known: of a later run, or more of the same. */
function isLater(stored: StoredRecord, known: StoredRecord): boolean {
  if (stored.resourceVersion === known.resourceVersion) return false;
  const { seq } = known.record;
  return stored.record.seq > seq || (stored.record.seq === seq && progress(stored.record) >= progress(known.record));
}

function adopt(turn: Transition, stored: StoredRecord | undefined, inputs: Inputs, isFirst: boolean): void {
  const { stored: known, leaseAt } = turn.state;
  // Whoever has heard of the run can only have made its lease longer.
  const granted = known && stored?.record.seq === known.record.seq ? leaseAt : undefined;
  turn.become({
    phase: 'idle',
    stored,
    doing: undefined,
    leaseAt: undefined,
    outcome: undefined,
    wake: undefined,
    strayed: false,
  });
  if (stored && stored.record.phase !== 'Idle') adoptRun(turn, stored.record, inputs, isFirst, granted ?? 0);
  else adoptRest(turn, stored?.record, inputs);
}

function adoptRest(turn: Transition, record: RunRecord | undefined, inputs: Inputs): void {
  if (goneFor(turn, inputs)) return;
  if (record) {
    const { nowMs, monotonicMs, registration } = turn.context;
    // A hint: it may have been written by another clock.
    const delayMs = Math.min(Math.max(0, (record.nextAtMs ?? nowMs) - nowMs), longestDelayMs(record, registration));
    turn.become({ wake: { at: monotonicMs + delayMs, reason: wakeReason(record.lastOutcome?.outcome) } });
  }
  turn.want(...newsOf(inputs, record).map((one) => ({ ...one, lane: calm(one.lane) })));
  turn.settle(inputs);
  turn.report(inputs);
}

/** Nobody waits for what a restart finds: that is not urgent, what somebody does now is. */
const calm = (lane: Lane): Lane => (lane === lanes.manual ? lanes.time : lane);

/** Somebody has started it. What reports by itself may do so to us; for what has to be answered to its caller nobody waits any more. */
function adoptRun(turn: Transition, record: RunRecord, inputs: Inputs, isFirst: boolean, granted: number): void {
  const { nowMs, monotonicMs, registration } = turn.context;
  const elapsedMs = Math.max(0, nowMs - (record.startedAtMs ?? nowMs) - clockSlackMs);
  // One of ours may have been later.
  const lastStart = Math.max(turn.state.lastStart ?? Number.NEGATIVE_INFINITY, monotonicMs - elapsedMs);
  turn.become({ phase: 'running', lastStart });
  if (isFirst && !(record.asynchronous && record.phase === 'Running')) {
    loseRun(turn, inputs);
    return;
  }
  const longestMs = Math.max(graceMs, registration.leaseMs, registration.timeoutMs);
  const leftMs = (record.leaseUntilMs ?? nowMs) - nowMs + longestMs * unstoredShare;
  turn.become({ leaseAt: Math.max(granted, monotonicMs + Math.min(Math.max(graceMs, leftMs), longestMs)) });
  if (inputs.mayRun.may === 'delete') onDeleting(turn, inputs);
  turn.awaitLease();
  turn.report(inputs);
}
