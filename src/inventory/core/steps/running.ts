import type { InventoryCode } from '../../../api/codes.ts';
import type { Outcome } from '../../../api/inventory/contract/outcome.ts';
import { alreadySatisfied, describeReason } from '../../../api/inventory/describe-state.ts';
import type { Inputs, KeyEventOf, OutcomeWithOutputs } from '../key-state.ts';
import type { RunRecord } from '../run-record.ts';
import { nextDelayMs, notAcceptedDelayMs, tokenLifetimeMs, unstoredShare, wakeReason } from '../timing.ts';
import { mergeTriggers, type Trigger, triggerReasons } from '../triggers.ts';
import { isComponentAbandoned, retire } from './drain.ts';
import { type Ending, endedRecord, withoutCredential } from './ended-record.ts';
import { rolledBack } from './start.ts';
import { alreadySatisfiedRemedy, heldBy, type Transition } from './transition.ts';
import { entryTriggers, isTimer, isWanted } from './wanted.ts';

export function onAccepted(transition: Transition, { heartbeatTimeoutMs, inputs }: KeyEventOf<'accepted'>): void {
  if (!isRunning(transition)) return;
  transition.addEffect(answeredEffect);
  extendDeadline(transition, heartbeatTimeoutMs, {});
  transition.report(inputs);
}

/** A new credential replaces the current one, which may write for one more token lifetime. */
export function onHeartbeat(
  transition: Transition,
  { heartbeatTimeoutMs, credential, inputs }: KeyEventOf<'heartbeat'>,
): void {
  const current = transition.state.stored?.record.credentialId;
  const isRefresh = credential !== undefined && current !== undefined && credential.id !== current;
  const expiresAtMs = transition.context.nowMs + tokenLifetimeMs;
  extendDeadline(
    transition,
    heartbeatTimeoutMs,
    isRefresh ? { credentialId: credential.id, previousCredential: { id: current, expiresAtMs } } : {},
  );
  if (!transition.state.rejectedReport) return;
  transition.update({ rejectedReport: { last: undefined, shown: undefined } });
  transition.report(inputs);
}

/** Only the first of a run changes the status and warns: a component cannot cause many writes. */
export function onReportRejected(transition: Transition, { code, inputs }: KeyEventOf<'reportRejected'>): void {
  if (!isRunning(transition)) return;
  const { rejectedReport: before } = transition.state;
  if (before) {
    transition.update({ rejectedReport: { ...before, last: code } });
    return;
  }
  transition.update({ rejectedReport: { last: code, shown: { code, atMs: transition.context.nowMs } } });
  const message = `the server rejected a report of the component (${code}); the HTTP answer to the component has the cause: check the log of the component`;
  transition.addEffect({ kind: 'warn', code: 'ReportRejected', message });
  transition.report(inputs);
}

/** Not beyond the maximum duration. Small changes are stored only with another change. */
function extendDeadline(
  transition: Transition,
  heartbeatTimeoutMs: number,
  change: Partial<Pick<RunRecord, 'credentialId' | 'previousCredential'>>,
): void {
  const { stored, lastStart } = transition.state;
  if (!stored || !isRunning(transition)) return;
  const { nowMs, monotonicMs, registration } = transition.context;
  const remainingMs = (lastStart ?? monotonicMs) + registration.maxRunMs - monotonicMs;
  const grantedMs = Math.max(0, Math.min(heartbeatTimeoutMs, remainingMs));
  transition.update({ deadlineAt: monotonicMs + grantedMs, heartbeatTimeoutMs });
  const { record } = stored;
  const gainedMs = nowMs + grantedMs - (record.deadlineMs ?? nowMs);
  // The next leader adds the unstored share to the stored deadline.
  const isWorthStoring =
    !record.asynchronous || 'credentialId' in change || Math.abs(gainedMs) >= grantedMs * unstoredShare;
  if (isWorthStoring)
    transition.store({ ...record, ...change, asynchronous: true, deadlineMs: nowMs + grantedMs }, stored);
  transition.scheduleDeadline();
}

type MissingCheck = KeyEventOf<'outcome'>['missing'];

export function onOutcome(transition: Transition, { seq, outcome, inputs, missing }: KeyEventOf<'outcome'>): void {
  const { phase, stored } = transition.state;
  if (!stored || stored.record.seq !== seq || (phase !== 'running' && phase !== 'draining')) return;
  if (!stored.record.asynchronous) transition.addEffect(answeredEffect);
  const { operation } = stored.record;
  if (outcome.outcome === (operation === 'delete' ? 'Done' : 'Deleted')) {
    const allowed = operation === 'delete' ? 'Deleted' : 'Done';
    const message = `${outcome.outcome} is not an outcome of operation ${operation}; answer ${allowed}`;
    finish(transition, { outcome: 'Retry', reason: 'InvalidOutcome', message }, inputs, undefined);
  } else if (outcome.outcome === 'Deleted') {
    retire(transition, endedRecord(transition, stored.record, outcome));
    transition.report(inputs, true);
  } else if (phase === 'running' && hasOutputs(outcome)) {
    transition.update({ phase: 'applying', outcome, deadlineAt: undefined });
    transition.store({ ...withoutCredential(stored.record), phase: 'Applying' }, stored);
    transition.addEffect({ kind: 'apply', outputs: outcome.outputs });
  } else {
    finish(transition, outcome, inputs, missing);
  }
}

const answeredEffect = { kind: 'recordCallResult', verdict: 'answered', retryAfterMs: undefined } as const;

const hasOutputs = (outcome: Outcome): outcome is OutcomeWithOutputs & Required<Pick<OutcomeWithOutputs, 'outputs'>> =>
  'outputs' in outcome && outcome.outputs !== undefined;

export function onApplied(transition: Transition, { problem, inputs }: KeyEventOf<'applied'>): void {
  const { phase, outcome } = transition.state;
  if (phase !== 'applying' || !outcome) return;
  finish(transition, problem ? endingOf(problem) : outcome, inputs, undefined);
}

const endingOf = ({ code, message }: { readonly code: string; readonly message: string }): Ending => ({
  outcome: ruleCodes.has(code) ? 'Failed' : 'Retry',
  reason: code,
  message,
});

/** The component published outputs that it may not write, so a retry cannot succeed. */
const ruleCodes: ReadonlySet<string> = new Set<InventoryCode>(['ForeignPath', 'EntryTooLarge']);

/** Ends the run as Retry, although the component may have run. */
export function onCallFailed(transition: Transition, { code, message, inputs }: KeyEventOf<'callFailed'>): void {
  if (!isRunning(transition)) return;
  transition.addEffect(answeredEffect);
  finish(transition, { outcome: 'Retry', reason: code, message }, inputs, undefined);
}

export function expireRun(transition: Transition, inputs: Inputs): void {
  const { phase, stored, deadlineAt, heartbeatTimeoutMs, lastStart, rejectedReport } = transition.state;
  const { name, maxRunMs } = transition.context.registration;
  const limit = `spec.maxRunSeconds of ComponentReconciler ${name}, ${maxRunMs / 1000} s`;
  // The sum in `extendDeadline` is rounded.
  const lastedMaximum = deadlineAt !== undefined && lastStart !== undefined && deadlineAt - lastStart > maxRunMs - 1;
  const rejected = rejectedReport?.last ? `; its last report was rejected (${rejectedReport.last})` : '';
  const found = 'the component reported no valid outcome';
  // A report answered 401 or 403 counts for no run: its sender need not be the component.
  const check = rejected
    ? 'check its log'
    : 'a report that was answered 401 or 403 does not count: check the answers in the log of the component';
  const timeout = heartbeatTimeoutMs === undefined ? '' : `, ${heartbeatTimeoutMs / 1000} s`;
  const isAsynchronous = stored?.record.asynchronous === true;
  const post = 'the component must POST the outcome to callback of the call';
  const message = lastedMaximum
    ? `${found} within ${limit}${rejected}${isAsynchronous ? `; ${post}` : ''}; ${check}; if its work takes longer, increase the field`
    : isAsynchronous && phase === 'draining'
      ? `${found} before the deadline of the run${rejected}; the entry is being deleted, so no heartbeat extends the run; ${check}; once a heartbeat is answered 403, the component must stop, and POST its outcome to callback of the call`
      : isAsynchronous
        ? `${found} or heartbeat within its heartbeat timeout (leaseSeconds${timeout})${rejected}; ${post}, and until then heartbeats in time, or with more leaseSeconds, which extend a run up to ${limit}; ${check}`
        : `${found} before the deadline of the run${rejected}; check its log; for longer work it must answer 202 and send heartbeats, which extend a run up to ${limit}`;
  finish(transition, { outcome: 'Retry', reason: 'LeaseOver', message }, inputs, undefined);
}

/** The process that called the component ended or lost its state, and with it answer or outputs. */
export function endInterruptedRun(transition: Transition, inputs: Inputs): void {
  const message =
    'a restart, a change of the leader, or an internal error interrupted the run, and its answer or outputs are lost; the server retries';
  finish(transition, { outcome: 'Retry', reason: 'LeaseOver', message }, inputs, undefined);
}

const isRunning = ({ state: { phase, stored } }: Transition): boolean =>
  stored !== undefined && (phase === 'running' || phase === 'draining');

/** Ends the run as Retry, and queues the key again with the same triggers. */
export function onNotAccepted(
  transition: Transition,
  { code, message, retryAfterMs, probeDelayMs = 0, inputs }: KeyEventOf<'notAccepted'>,
): void {
  const { stored } = transition.state;
  if (!stored || !isRunning(transition)) return;
  transition.addEffect({ kind: 'recordCallResult', verdict: 'failed', retryAfterMs, problem: { code, message } });
  const ended = endedRecord(transition, stored.record, { outcome: 'Retry', reason: code, message });
  const delayMs = notAcceptedDelayMs(retryAfterMs, transition.context.random);
  // With Retry-After, the next run waits for that time, unless the circuit breaker admits no call
  // then.
  const isTimed = code === 'Busy' && retryAfterMs !== undefined && probeDelayMs <= delayMs;
  runAgain(transition, isTimed ? ended : { ...ended, heldBy: 'Unreachable' }, delayMs, inputs);
}

/** Rolls the record back and queues the key again. The run number stays used. */
export function onNotCalled(transition: Transition, { retryAfterMs, inputs }: KeyEventOf<'notCalled'>): void {
  const { stored, cause } = transition.state;
  if (!stored || !isRunning(transition)) return;
  const delayMs = notAcceptedDelayMs(retryAfterMs, transition.context.random);
  runAgain(transition, rolledBack(stored.record, cause?.before, 0), delayMs, inputs);
}

/** Stores a run that did not happen, and queues the key again, unless it was abandoned. */
function runAgain(transition: Transition, record: RunRecord, delayMs: number, inputs: Inputs): void {
  const { stored, cause, pending } = transition.state;
  const { nowMs, monotonicMs } = transition.context;
  if (!stored) return;
  if (isComponentAbandoned(inputs)) {
    retire(transition);
    transition.report(inputs);
    return;
  }
  const atMs = nowMs + delayMs;
  transition.store({ ...record, nextAtMs: atMs, heldBy: heldBy(inputs) ?? record.heldBy }, stored);
  const wake = { at: monotonicMs + delayMs, reason: triggerReasons.retry };
  transition.update({ phase: 'idle', cause: undefined, deadlineAt: undefined, pending: undefined, wake });
  // Triggers that arrived during the run wait as well: their calls would fail, too.
  transition.addTriggers(
    ...mergeTriggers(cause?.triggers ?? [], pending?.triggers ?? []).map((delayed) => ({ ...delayed, atMs })),
  );
  transition.scheduleNext(inputs);
  transition.report(inputs);
}

/** Stores the outcome and schedules the next run, or retires an abandoned key. */
function finish(transition: Transition, ending: Ending, inputs: Inputs, missing: MissingCheck): void {
  const { stored } = transition.state;
  if (!stored) return;
  if (isComponentAbandoned(inputs)) {
    retire(transition, endedRecord(transition, stored.record, ending));
    transition.report(inputs, true);
    return;
  }
  const { nowMs, monotonicMs, random, registration } = transition.context;
  const isAlreadySatisfied = ending.outcome === 'NotReady' && missing?.heldAtStart === true && missing.holdsNow;
  const ended = endedRecord(
    transition,
    stored.record,
    isAlreadySatisfied ? { ...ending, reason: alreadySatisfied } : ending,
  );
  // `arrived` must refer to this outcome, not to the previous one.
  const endInputs: Inputs = { ...inputs, arrived: missing?.holdsNow === true && !isAlreadySatisfied };
  const next = nextTriggers(transition, endInputs, ended);
  const delayMs = nextDelayMs(ending, Math.max(0, ended.attempt - 1), registration, random);
  const nextAtMs = nowMs + (next.length > 0 ? 0 : delayMs);
  transition.store({ ...ended, nextAtMs, heldBy: heldBy(inputs) }, stored);
  transition.update({
    phase: 'idle',
    pending: undefined,
    cause: undefined,
    deadlineAt: undefined,
    outcome: undefined,
    wake: { at: monotonicMs + delayMs, reason: wakeReason(ending.outcome) },
  });
  transition.addTriggers(...next);
  transition.report(endInputs, true);
  if (isAlreadySatisfied)
    transition.addEffect({ kind: 'warn', code: alreadySatisfied, message: alreadySatisfiedMessage(ending) });
  transition.scheduleNext(inputs);
}

function alreadySatisfiedMessage({ outcome, missing = [] }: Ending): string {
  const found = describeReason({ state: outcome, reason: alreadySatisfied, message: undefined, missing });
  return `the component ${found}; ${alreadySatisfiedRemedy(missing)}`;
}

/** Triggers that arrived during the run and still need one, and those from the entry. */
function nextTriggers({ state }: Transition, inputs: Inputs, ended: RunRecord): readonly Trigger[] {
  const pending = (state.pending?.triggers ?? []).filter(
    (arrived) => !isTimer(arrived) && isWanted(arrived, inputs, ended),
  );
  const fromEntry = entryTriggers(inputs, ended);
  // A pending trigger names the cause more precisely than a comparison of digests.
  const namesCause = pending.some(({ reason }) => reason !== triggerReasons.remote);
  return namesCause && fromEntry[0]?.reason !== triggerReasons.deleting ? pending : mergeTriggers(fromEntry, pending);
}
