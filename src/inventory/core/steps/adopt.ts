import { isDeepStrictEqual } from 'node:util';
import type { Inputs, KeyEventOf } from '../key-state.ts';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import { clockSlackMs, graceMs, maxDelayMs, unstoredShare, wakeReason } from '../timing.ts';
import { type Lane, lanes } from '../triggers.ts';
import { onDeletionOrAbandonment, retireIfUnneeded, reviveIfWanted } from './drain.ts';
import { endInterruptedRun } from './running.ts';
import type { Transition } from './transition.ts';
import { entryTriggers, isTimer, withoutDelay } from './wanted.ts';

/** Handles a record that the store reports. Ignores one that is not newer than the state. */
export function onRecordChanged(transition: Transition, { stored, inputs }: KeyEventOf<'recordChanged'>): void {
  const { phase, stored: current } = transition.state;
  // The result of this process's write follows as `started` or `conflict`.
  if (phase === 'starting') return;
  if (phase === 'gone' && !stored) {
    transition.update({ stored: undefined });
    if (reviveIfWanted(transition, inputs)) adoptIdle(transition, undefined, inputs);
    return;
  }
  if (stored && current && !isNewer(stored, current)) return;
  adopt(transition, stored, inputs, current === undefined);
}

/** The effects that depended on the lost write were skipped. */
export function onConflict(transition: Transition, { stored, inputs }: KeyEventOf<'conflict'>): void {
  const { phase, stored: current, cause } = transition.state;
  if (phase === 'starting') {
    transition.update({ cause: undefined });
    transition.addTriggers(...(cause?.triggers ?? []).map(withoutDelay));
    adopt(transition, stored, inputs, false);
  } else if (!stored || !current || stored.record.seq !== current.record.seq) {
    adopt(transition, stored, inputs, false);
  } else if (phase === 'gone' && stored.record.phase !== 'Idle') {
    transition.addEffect({ kind: 'retire', base: stored, ended: undefined });
    transition.update({ stored });
  } else if (stored.record.phase !== 'Idle') {
    transition.store(current.record, stored);
    resume(transition, inputs);
  } else if (
    current.record.phase === 'Idle' &&
    isDeepStrictEqual(stored.record.lastOutcome, current.record.lastOutcome)
  ) {
    // The write succeeded, but its answer was lost.
    transition.update({ stored });
    resume(transition, inputs);
  } else {
    // Another process ended the run first. Its outcome counts.
    adopt(transition, stored, inputs, false);
  }
}

/** Continues where the state of this process counts, not the stored record. */
function resume(transition: Transition, inputs: Inputs): void {
  const { phase, outcome } = transition.state;
  if (phase === 'applying' && outcome?.outputs) transition.addEffect({ kind: 'apply', outputs: outcome.outputs });
  else if (phase === 'running' || phase === 'draining') transition.scheduleDeadline();
  else transition.scheduleNext(inputs);
  transition.report(inputs, true);
}

const progress = ({ phase }: RunRecord): number => ['Running', 'Applying', 'Idle'].indexOf(phase);

/** A later run, or another version of this run with at least the same progress. */
function isNewer(stored: StoredRecord, current: StoredRecord): boolean {
  if (stored.resourceVersion === current.resourceVersion) return false;
  const { seq } = current.record;
  return stored.record.seq > seq || (stored.record.seq === seq && progress(stored.record) >= progress(current.record));
}

/** Replaces the state. `isFirst`: the state had no record, as on a new leader. */
function adopt(transition: Transition, stored: StoredRecord | undefined, inputs: Inputs, isFirst: boolean): void {
  const { stored: current, deadlineAt } = transition.state;
  // A heartbeat may have extended the deadline beyond the stored one.
  const grantedDeadline = current && stored?.record.seq === current.record.seq ? deadlineAt : undefined;
  transition.update({
    phase: 'idle',
    stored,
    cause: undefined,
    deadlineAt: undefined,
    heartbeatTimeoutMs: undefined,
    outcome: undefined,
    wake: undefined,
    inputsChanged: false,
    rejectedReport: undefined,
  });
  if (stored && stored.record.phase !== 'Idle')
    adoptRun(transition, stored.record, inputs, isFirst, grantedDeadline ?? 0);
  else {
    if (stored && stored.record.lastOutcome?.seq !== current?.record.lastOutcome?.seq) dropTimers(transition);
    adoptIdle(transition, stored?.record, inputs);
  }
}

/** A run of another process has ended, and its record has the time of the next run. */
function dropTimers(transition: Transition): void {
  const { pending } = transition.state;
  transition.update({ pending: undefined });
  transition.addTriggers(...(pending?.triggers ?? []).filter((waiting) => !isTimer(waiting)));
}

/** Continues without an active run: retires the key, or schedules the next run. */
function adoptIdle(transition: Transition, record: RunRecord | undefined, inputs: Inputs): void {
  if (retireIfUnneeded(transition, inputs)) return;
  if (record) {
    const { nowMs, monotonicMs, registration } = transition.context;
    // Another clock may have set the stored time, so cap the delay.
    const delayMs = Math.min(Math.max(0, (record.nextAtMs ?? nowMs) - nowMs), maxDelayMs(record, registration));
    transition.update({ wake: { at: monotonicMs + delayMs, reason: wakeReason(record.lastOutcome?.outcome) } });
  }
  transition.addTriggers(
    ...entryTriggers(inputs, record).map((found) => ({ ...found, lane: demoteManual(found.lane) })),
  );
  transition.scheduleNext(inputs);
  transition.report(inputs);
}

/** Changes found in an adopted record are not urgent: the manual lane stays free for new ones. */
const demoteManual = (lane: Lane): Lane => (lane === lanes.manual ? lanes.time : lane);

/**
 * Adopts a run that another process started, or this one before it lost its state. If `isFirst`, a
 * run whose answer or outputs are lost ends at once; others may report until their deadline.
 */
function adoptRun(
  transition: Transition,
  record: RunRecord,
  inputs: Inputs,
  isFirst: boolean,
  grantedDeadline: number,
): void {
  const { nowMs, monotonicMs, registration } = transition.context;
  const elapsedMs = Math.max(0, nowMs - (record.startedAtMs ?? nowMs) - clockSlackMs);
  // This process may have started a later run.
  const lastStart = Math.max(transition.state.lastStart ?? Number.NEGATIVE_INFINITY, monotonicMs - elapsedMs);
  transition.update({ phase: 'running', lastStart });
  if (isFirst && !(record.asynchronous && record.phase === 'Running')) {
    endInterruptedRun(transition, inputs);
    return;
  }
  const longestMs = Math.max(graceMs, registration.heartbeatTimeoutMs, registration.timeoutMs);
  const leftMs = (record.deadlineMs ?? nowMs) - nowMs + longestMs * unstoredShare;
  transition.update({
    deadlineAt: Math.max(grantedDeadline, monotonicMs + Math.min(Math.max(graceMs, leftMs), longestMs)),
  });
  if (inputs.mayRun.may === 'delete') onDeletionOrAbandonment(transition, inputs);
  transition.scheduleDeadline();
  transition.report(inputs);
}
