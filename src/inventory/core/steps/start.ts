import { maxHistory, maxReasons } from '../../../api/inventory/reconcile-run.ts';
import type { PastRun, RunRecord, StoredRecord } from '../run-record.ts';
import type { Inputs } from '../step.ts';
import { callSlackMs, isLivelock, wakeReason, withStart } from '../timing.ts';
import { mergeTriggers, reasonText, type Trigger, trigger } from '../triggers.ts';
import { goneFor, isAbandoned, retire } from './drain.ts';
import type { Transition } from './transition.ts';
import { atOnce, isWanted, newsOf } from './wanted.ts';

/** The queue hands the key out: it starts, if there still is something to start for. */
export function onTurn(turn: Transition, inputs: Inputs): void {
  const { monotonicMs } = turn.context;
  const { stored, pending, wake } = turn.state;
  if (goneFor(turn, inputs)) return;
  const isDue = wake !== undefined && wake.at <= monotonicMs;
  const own = isDue ? [trigger(wake.reason)] : [];
  if (inputs.mayRun.may === 'no') {
    // Kept until it may run again.
    turn.want(...own);
    if (isDue) turn.become({ wake: undefined });
    turn.settle(inputs);
    turn.report(inputs);
    return;
  }
  const isPendingDue = pending !== undefined && pending.dueAt <= monotonicMs;
  if (!isPendingDue && !isDue) {
    turn.settle(inputs);
    return;
  }
  const triggers = mergeTriggers(pending?.triggers ?? [], own);
  if (!triggers.some((one) => isWanted(one, inputs, stored?.record))) {
    // The inputs are back to what the last run had.
    turn.become({ pending: undefined });
    turn.settle(inputs);
    turn.report(inputs);
    return;
  }
  if (monotonicMs < turn.earliestStart()) {
    turn.want(...own);
    turn.settle(inputs);
  } else {
    start(turn, inputs, inputs.mayRun.may, triggers);
  }
}

function start(
  turn: Transition,
  inputs: Inputs,
  operation: RunRecord['operation'],
  triggers: readonly Trigger[],
): void {
  const { stored, pending } = turn.state;
  const { nowMs, entry, registration } = turn.context;
  const before = stored?.record;
  const isSame = before?.inputsDigest === inputs.digest && before.operation === operation;
  const lane = pending?.lane ?? triggers[0]?.lane ?? 2;
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
    leaseUntilMs: nowMs + registration.timeoutMs + callSlackMs,
    attempt: isSame ? before.attempt : 0,
    nextAtMs: undefined,
    lastOutcome: before?.lastOutcome,
    history: before ? historyOf(before) : [],
  };
  turn.become({
    phase: 'starting',
    strayed: false,
    missed: false,
    pending: undefined,
    wake: undefined,
    doing: {
      digest: inputs.digest,
      triggers,
      lane,
      before: { inputsDigest: before?.inputsDigest, operation: before?.operation ?? 'reconcile' },
    },
  });
  turn.do({ kind: 'start', next, base: stored });
  turn.report(inputs);
}

/** With the run that the record is about, if that has ended with an outcome. */
function historyOf({ seq, operation, reasons, startedAtMs, lastOutcome, history }: RunRecord): readonly PastRun[] {
  if (lastOutcome?.seq !== seq || startedAtMs === undefined) return history;
  const { outcome, durationMs } = lastOutcome;
  return [{ seq, operation, reasons, outcome, startedAtMs, durationMs }, ...history].slice(0, maxHistory);
}

/** The start is stored: from here on it is the only run, and the component is called. */
export function onStarted(turn: Transition, stored: StoredRecord, inputs: Inputs): void {
  const { monotonicMs, registration } = turn.context;
  const { record } = stored;
  turn.become({ stored });
  if (inputs.mayRun.may !== record.operation) {
    unstart(turn, stored, inputs);
    return;
  }
  turn.become({
    phase: 'running',
    lastStart: monotonicMs,
    leaseAt: monotonicMs + registration.timeoutMs + callSlackMs,
    recent: withStart(turn.state.recent, record.inputsDigest ?? '', monotonicMs),
  });
  warnOfCircles(turn);
  turn.do({ kind: 'call' });
}

/** While this was being stored the entry began to go, or was suspended: nobody is called. */
function unstart(turn: Transition, stored: StoredRecord, inputs: Inputs): void {
  const { doing } = turn.state;
  turn.become({ phase: 'idle', doing: undefined });
  if (isAbandoned(inputs)) {
    retire(turn);
  } else {
    const { nowMs, monotonicMs } = turn.context;
    const next = released(stored.record, doing?.before, nowMs);
    turn.store(next, stored);
    // What it was to wait for before is forgotten with the start: its inputs may be back, and then nothing else asks for a run.
    turn.become({ wake: { at: monotonicMs, reason: wakeReason(next.lastOutcome?.outcome) } });
    turn.want(...(doing?.triggers ?? []).map(atOnce), ...newsOf(inputs, next));
    turn.settle(inputs);
  }
  turn.report(inputs);
}

/** As if it had not been started, its number apart. */
export function released(
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
    leaseUntilMs: undefined,
    nextAtMs,
  };
}

function warnOfCircles(turn: Transition): void {
  const { recent, doing, status: row } = turn.state;
  const isCircle = isLivelock(recent, turn.context.monotonicMs);
  if (isCircle === (row?.livelock !== undefined)) return;
  const paths = doing?.triggers.flatMap(({ about }) => (about === undefined ? [] : [about])) ?? [];
  const livelock = isCircle
    ? `the same inputs have come back more than 5 times in 10 minutes${paths.length > 0 ? `, by ${paths.join(', ')}` : ''}`
    : undefined;
  if (row) turn.become({ status: { ...row, livelock } });
  if (row) turn.do({ kind: 'tell', row: { ...row, livelock } });
  if (livelock) turn.do({ kind: 'warn', code: 'Livelock', message: livelock });
}
