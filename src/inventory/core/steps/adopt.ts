import { isDeepStrictEqual } from 'node:util';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Inputs, KeyEventOf } from '../step.ts';
import { clockSlackMs, graceMs, maxDelayMs, unstoredShare, wakeReason } from '../timing.ts';
import { type Lane, lanes } from '../triggers.ts';
import { onDeleting, retireIfUnneeded } from './drain.ts';
import { expireRun } from './running.ts';
import type { Transition } from './transition.ts';
import { entryTriggers, withoutDelay } from './wanted.ts';

/** Handles a record that another writer stored: at startup, or after another process wrote it. */
export function onRecordChanged(transition: Transition, { stored, inputs }: KeyEventOf<'recordChanged'>): void {
  const { phase, stored: known } = transition.state;
  // The result of our own write follows and is more precise.
  if (phase === 'starting') return;
  if (phase === 'gone' && !stored) {
    transition.update({ stored: undefined });
    return;
  }
  if (stored && known && !isNewer(stored, known)) return;
  adopt(transition, stored, inputs, known === undefined);
}

/** Handles a write that lost the compare-and-swap. Effects that depended on it were skipped. */
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
    // No other writer may change our own run, so the write is repeated.
    transition.store(known.record, stored);
    resume(transition, inputs);
  } else if (known.record.phase === 'Idle' && isDeepStrictEqual(stored.record.lastOutcome, known.record.lastOutcome)) {
    // The stored record is ours: the answer to the write was lost.
    transition.update({ stored });
    resume(transition, inputs);
  } else {
    // Another process ended the run first, and that is final.
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

/** Whether the record is of a later run, or of the same run with at least the same progress. */
function isNewer(stored: StoredRecord, known: StoredRecord): boolean {
  if (stored.resourceVersion === known.resourceVersion) return false;
  const { seq } = known.record;
  return stored.record.seq > seq || (stored.record.seq === seq && progress(stored.record) >= progress(known.record));
}

function adopt(transition: Transition, stored: StoredRecord | undefined, inputs: Inputs, isFirst: boolean): void {
  const { stored: known, deadlineAt } = transition.state;
  // A heartbeat that this process received can only have extended the deadline.
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
    // The stored time is only a hint: another clock may have written it.
    const delayMs = Math.min(Math.max(0, (record.nextAtMs ?? nowMs) - nowMs), maxDelayMs(record, registration));
    transition.update({ wake: { at: monotonicMs + delayMs, reason: wakeReason(record.lastOutcome?.outcome) } });
  }
  transition.addTriggers(...entryTriggers(inputs, record).map((one) => ({ ...one, lane: demoteManual(one.lane) })));
  transition.scheduleNext(inputs);
  transition.report(inputs);
}

/** Work that a restart finds is not urgent; keep the manual lane for new changes. */
const demoteManual = (lane: Lane): Lane => (lane === lanes.manual ? lanes.time : lane);

/**
 * Adopts a run that another process started. An asynchronous run may report to this process. For a synchronous run, the caller that waits
 * for the answer is gone.
 */
function adoptRun(transition: Transition, record: RunRecord, inputs: Inputs, isFirst: boolean, granted: number): void {
  const { nowMs, monotonicMs, registration } = transition.context;
  const elapsedMs = Math.max(0, nowMs - (record.startedAtMs ?? nowMs) - clockSlackMs);
  // This process may have started a later run.
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
