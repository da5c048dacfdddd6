import { maxHistory, maxReasons } from '../../../api/inventory/reconcile-run.ts';
import { formatTime } from '../../../kit/clock.ts';
import type { Inputs } from '../key-state.ts';
import type { PastRun, RunRecord, StoredRecord } from '../run-record.ts';
import { callSlackMs, isLivelock, wakeReason, withStart } from '../timing.ts';
import { lanes, mergeTriggers, reasonText, type Trigger, trigger, triggerReasons } from '../triggers.ts';
import { isComponentAbandoned, retire, retireIfUnneeded } from './drain.ts';
import { heldBy, type Transition } from './transition.ts';
import { entryTriggers, isWanted, mayHaveArrived, withoutDelay } from './wanted.ts';

export function startIfWanted(transition: Transition, inputs: Inputs): void {
  const { monotonicMs } = transition.context;
  const { stored, pending, wake } = transition.state;
  if (retireIfUnneeded(transition, inputs)) return;
  const isDue = wake !== undefined && wake.at <= monotonicMs;
  const wakeTriggers = isDue ? [trigger(wake.reason)] : [];
  if (inputs.mayRun.may === 'no') {
    // Keep the triggers until the key may run again.
    transition.addTriggers(...wakeTriggers);
    if (isDue) transition.update({ wake: undefined });
    transition.scheduleNext(inputs);
    transition.report(inputs);
    return;
  }
  const isPendingDue = pending !== undefined && pending.dueAt <= monotonicMs;
  if (!isPendingDue && !isDue) {
    transition.scheduleNext(inputs);
    return;
  }
  const triggers = mergeTriggers(pending?.triggers ?? [], wakeTriggers).filter(
    ({ reason }) => reason !== triggerReasons.inputArrived || mayHaveArrived(inputs, stored?.record),
  );
  if (!triggers.some((candidate) => isWanted(candidate, inputs, stored?.record))) {
    // For example, the inputs have changed back.
    transition.update({ pending: undefined });
    transition.scheduleNext(inputs);
    transition.report(inputs);
    return;
  }
  if (monotonicMs < transition.earliestStart()) {
    transition.addTriggers(...wakeTriggers);
    transition.scheduleNext(inputs);
  } else {
    start(transition, inputs, inputs.mayRun.may, triggers);
  }
}

function start(
  transition: Transition,
  inputs: Inputs,
  operation: RunRecord['operation'],
  triggers: readonly Trigger[],
): void {
  const { stored, pending } = transition.state;
  const { nowMs, entry, registration } = transition.context;
  const before = stored?.record;
  const repeatsRun = before?.inputsDigest === inputs.digest && before.operation === operation;
  const lane = pending?.lane ?? triggers[0]?.lane ?? lanes.time;
  const next: RunRecord = {
    entry: before?.entry ?? entry,
    component: registration.name,
    seq: (before?.seq ?? 0) + 1,
    phase: 'Running',
    operation,
    reasons: triggers.map(reasonText).slice(0, maxReasons),
    inputsDigest: inputs.digest,
    credentialId: undefined,
    previousCredential: undefined,
    startedAtMs: nowMs,
    asynchronous: false,
    deadlineMs: nowMs + registration.timeoutMs + callSlackMs,
    attempt: repeatsRun ? before.attempt : 0,
    nextAtMs: undefined,
    heldBy: undefined,
    lastOutcome: before?.lastOutcome,
    history: before ? historyOf(before) : [],
  };
  transition.update({
    phase: 'starting',
    inputsChanged: false,
    sawMissing: false,
    rejectedReport: undefined,
    heartbeatTimeoutMs: undefined,
    pending: undefined,
    wake: undefined,
    cause: {
      digest: inputs.digest,
      triggers,
      lane,
      before: { inputsDigest: before?.inputsDigest, operation: before?.operation ?? 'reconcile' },
    },
  });
  transition.addEffect({ kind: 'start', next, base: stored });
  transition.report(inputs);
}

function historyOf({ seq, operation, reasons, startedAtMs, lastOutcome, history }: RunRecord): readonly PastRun[] {
  if (lastOutcome?.seq !== seq || startedAtMs === undefined) return history;
  const { outcome, reason, durationMs } = lastOutcome;
  return [{ seq, operation, reasons, outcome, reason, startedAtMs, durationMs }, ...history].slice(0, maxHistory);
}

/** Calls the component, unless the operation may no longer run. */
export function onStarted(transition: Transition, stored: StoredRecord, inputs: Inputs): void {
  const { monotonicMs, registration } = transition.context;
  const { record } = stored;
  transition.update({ stored });
  if (inputs.mayRun.may !== record.operation) {
    cancelStart(transition, stored, inputs);
    return;
  }
  transition.update({
    phase: 'running',
    lastStart: monotonicMs,
    deadlineAt: monotonicMs + registration.timeoutMs + callSlackMs,
    recentStarts: withStart(transition.state.recentStarts, record.inputsDigest ?? '', monotonicMs),
  });
  reportLivelock(transition);
  transition.addEffect({ kind: 'call' });
}

/** Undoes a stored start before the call: the entry was, for example, suspended meanwhile. */
function cancelStart(transition: Transition, stored: StoredRecord, inputs: Inputs): void {
  const { cause } = transition.state;
  transition.update({ phase: 'idle', cause: undefined });
  if (isComponentAbandoned(inputs)) {
    retire(transition);
  } else {
    const { nowMs, monotonicMs } = transition.context;
    const next = { ...rolledBack(stored.record, cause?.before, nowMs), heldBy: heldBy(inputs) };
    transition.store(next, stored);
    // The start discarded the wake time. Without one, inputs that changed back would start no run.
    transition.update({ wake: { at: monotonicMs, reason: wakeReason(next.lastOutcome?.outcome) } });
    transition.addTriggers(...(cause?.triggers ?? []).map(withoutDelay), ...entryTriggers(inputs, next));
    transition.scheduleNext(inputs);
  }
  transition.report(inputs);
}

/** The record without the run: idle, with the values of `before`. The run number stays used. */
export function rolledBack(
  record: RunRecord,
  before: Pick<RunRecord, 'inputsDigest' | 'operation'> | undefined,
  nextAtMs: number,
): RunRecord {
  return {
    ...record,
    phase: 'Idle',
    inputsDigest: before?.inputsDigest,
    operation: before?.operation ?? record.operation,
    credentialId: undefined,
    previousCredential: undefined,
    asynchronous: false,
    deadlineMs: undefined,
    nextAtMs,
  };
}

/** Warns if the start began a livelock. */
function reportLivelock(transition: Transition): void {
  const { recentStarts, cause, status } = transition.state;
  const { nowMs, monotonicMs } = transition.context;
  const isLooping = isLivelock(recentStarts, monotonicMs);
  if (isLooping === (status?.livelock !== undefined)) return;
  const livelock = isLooping ? livelockMessage(cause?.triggers ?? [], nowMs) : undefined;
  if (status) {
    transition.update({ status: { ...status, livelock } });
    transition.addEffect({ kind: 'reportStatus', status: { ...status, livelock } });
  }
  if (livelock) transition.addEffect({ kind: 'warn', code: 'Livelock', message: livelock });
}

/** Has the time, because the message stays until a later run starts. */
function livelockMessage(triggers: readonly Trigger[], nowMs: number): string {
  // A watched object is no input, so it did not cause the livelock.
  const changes = triggers.flatMap(({ reason, detail }) =>
    detail === undefined || reason === triggerReasons.remote ? [] : [detail],
  );
  const found = `the same inputs started more than 5 runs in the 10 minutes before ${formatTime(nowMs)}`;
  const remedy = 'check which component or user changes these inputs back and forth';
  if (changes.length === 0) return `${found}; ${remedy}`;
  return `${found}; changes of ${changes.join(', ')} started the last of them; ${remedy}`;
}
