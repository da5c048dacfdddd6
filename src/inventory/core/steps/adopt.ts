import { isDeepStrictEqual } from 'node:util';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Inputs, KeyEventOf } from '../step.ts';
import { clockSlackMs, graceMs, maxDelayMs, unstoredShare, wakeReason } from '../timing.ts';
import { type Lane, lanes } from '../triggers.ts';
import { onDeleting, retireIfUnneeded } from './drain.ts';
import { expireRun } from './running.ts';
import type { Transition } from './transition.ts';
import { entryTriggers, withoutDelay } from './wanted.ts';

/** The record as somebody else has left it: at start, or by another process meanwhile. */
export function onRecordChanged(transition: Transition, { stored, inputs }: KeyEventOf<'recordChanged'>): void {
  const { phase, stored: known } = transition.state;
  // The answer to our own write says more.
  if (phase === 'starting') return;
  if (phase === 'gone' && !stored) {
    transition.update({ stored: undefined });
    return;
  }
  if (stored && known && !isNewer(stored, known)) return;
  adopt(transition, stored, inputs, known === undefined);
}

/** A write of ours came second. What was to follow from it was not done. */
export function onConflict(transition: Transition, { stored, inputs }: KeyEventOf<'conflict'>): void {
  const { phase, stored: known, cause } = transition.state;
  if (phase === 'starting') {
    transition.update({ cause: undefined });
    transition.addTriggers(...(cause?.triggers ?? []).map(withoutDelay));
    adopt(transition, stored, inputs, false);
  } else if (!stored || !known || stored.record.seq !== known.record.seq) {
    adopt(transition, stored, inputs, false);
  } else if (phase === 'gone' && stored.record.phase !== 'Idle') {
    transition.addEffect({ kind: 'retire', base: stored, ended: undefined });
    transition.update({ stored });
  } else if (stored.record.phase !== 'Idle') {
    // Of our own run nobody else has anything to say: what is to be stored still is.
    transition.store(known.record, stored);
    resume(transition, inputs);
  } else if (known.record.phase === 'Idle' && isDeepStrictEqual(stored.record.lastOutcome, known.record.lastOutcome)) {
    // It was ours, and the answer to it got lost.
    transition.update({ stored });
    resume(transition, inputs);
  } else {
    // Somebody has ended it before us, and that cannot change any more.
    adopt(transition, stored, inputs, false);
  }
}

function resume(transition: Transition, inputs: Inputs): void {
  const { phase, outcome } = transition.state;
  if (phase === 'applying' && outcome?.outputs) transition.addEffect({ kind: 'apply', outputs: outcome.outputs });
  else if (phase === 'running' || phase === 'draining') transition.scheduleDeadline();
  else transition.scheduleNext(inputs);
  transition.report(inputs, true);
}

const progress = ({ phase }: RunRecord): number => ['Running', 'Applying', 'Idle'].indexOf(phase);

/** Whether it says something that is not known: of a later run, or more of the same. */
function isNewer(stored: StoredRecord, known: StoredRecord): boolean {
  if (stored.resourceVersion === known.resourceVersion) return false;
  const { seq } = known.record;
  return stored.record.seq > seq || (stored.record.seq === seq && progress(stored.record) >= progress(known.record));
}

function adopt(transition: Transition, stored: StoredRecord | undefined, inputs: Inputs, isFirst: boolean): void {
  const { stored: known, deadlineAt } = transition.state;
  // Whoever has heard of the run can only have made its lease longer.
  const granted = known && stored?.record.seq === known.record.seq ? deadlineAt : undefined;
  transition.update({
    phase: 'idle',
    stored,
    cause: undefined,
    deadlineAt: undefined,
    outcome: undefined,
    wake: undefined,
    inputsChanged: false,
  });
  if (stored && stored.record.phase !== 'Idle') adoptRun(transition, stored.record, inputs, isFirst, granted ?? 0);
  else adoptIdle(transition, stored?.record, inputs);
}

function adoptIdle(transition: Transition, record: RunRecord | undefined, inputs: Inputs): void {
  if (retireIfUnneeded(transition, inputs)) return;
  if (record) {
    const { nowMs, monotonicMs, registration } = transition.context;
    // A hint: it may have been written by another clock.
    const delayMs = Math.min(Math.max(0, (record.nextAtMs ?? nowMs) - nowMs), maxDelayMs(record, registration));
    transition.update({ wake: { at: monotonicMs + delayMs, reason: wakeReason(record.lastOutcome?.outcome) } });
  }
  transition.addTriggers(...entryTriggers(inputs, record).map((one) => ({ ...one, lane: demoteManual(one.lane) })));
  transition.scheduleNext(inputs);
  transition.report(inputs);
}

/** Nobody waits for what a restart finds: that is not urgent, what somebody does now is. */
const demoteManual = (lane: Lane): Lane => (lane === lanes.manual ? lanes.time : lane);

/** Somebody has started it. What reports by itself may do so to us; for what has to be answered to its caller nobody waits any more. */
function adoptRun(transition: Transition, record: RunRecord, inputs: Inputs, isFirst: boolean, granted: number): void {
  const { nowMs, monotonicMs, registration } = transition.context;
  const elapsedMs = Math.max(0, nowMs - (record.startedAtMs ?? nowMs) - clockSlackMs);
  // One of ours may have been later.
  const lastStart = Math.max(transition.state.lastStart ?? Number.NEGATIVE_INFINITY, monotonicMs - elapsedMs);
  transition.update({ phase: 'running', lastStart });
  if (isFirst && !(record.asynchronous && record.phase === 'Running')) {
    expireRun(transition, inputs);
    return;
  }
  const longestMs = Math.max(graceMs, registration.leaseMs, registration.timeoutMs);
  const leftMs = (record.leaseUntilMs ?? nowMs) - nowMs + longestMs * unstoredShare;
  transition.update({ deadlineAt: Math.max(granted, monotonicMs + Math.min(Math.max(graceMs, leftMs), longestMs)) });
  if (inputs.mayRun.may === 'delete') onDeleting(transition, inputs);
  transition.scheduleDeadline();
  transition.report(inputs);
}
