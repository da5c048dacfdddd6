import { maxMessage } from '../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../api/inventory/fields.ts';
import { maxHistory, maxReasons, type OutcomeName } from '../../api/inventory/reconcile-run.ts';
import type { Extension, Facts, StepOf } from './facts.ts';
import type { ActiveRun, RunToken } from './memory.ts';
import { type LastOutcome, type PastRun, type RunRecord, wasNotAccepted } from './run-record.ts';
import { callSlackMs, tokenLifetimeMs, unstoredShare } from './timing.ts';
import { reasonText } from './triggers.ts';

/** The record of a run that starts now. */
export function startedRecord(
  { stored, entry, registration, digest, nowMs }: Facts,
  { operation, triggers }: StepOf<'start'>,
  credentialId: string,
): RunRecord {
  const before = stored?.record;
  const repeatsRun = before?.inputsDigest === digest && before.operation === operation;
  return {
    entry: before?.entry ?? entry.ref,
    component: registration.name,
    seq: (before?.seq ?? 0) + 1,
    phase: 'Running',
    operation,
    reasons: triggers.map(reasonText).slice(0, maxReasons),
    inputsDigest: digest,
    credentialId,
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
}

function historyOf({ seq, operation, reasons, startedAtMs, lastOutcome, history }: RunRecord): readonly PastRun[] {
  if (lastOutcome?.seq !== seq || startedAtMs === undefined) return history;
  const { outcome, reason, durationMs } = lastOutcome;
  return [{ seq, operation, reasons, outcome, reason, startedAtMs, durationMs }, ...history].slice(0, maxHistory);
}

/** Not beyond the maximum duration. Small changes are stored only with another change. */
export function extension(
  { nowMs, monotonicMs }: Pick<Facts, 'nowMs' | 'monotonicMs'>,
  record: RunRecord,
  { registration, startedAt }: Pick<ActiveRun, 'registration' | 'startedAt'>,
  heartbeatTimeoutMs: number,
  credential?: Pick<RunToken, 'id'>,
): Extension {
  const grantedMs = Math.max(0, Math.min(heartbeatTimeoutMs, startedAt + registration.maxRunMs - monotonicMs));
  const current = record.credentialId;
  // The replaced token may write for one more token lifetime.
  const change =
    credential === undefined || current === undefined || credential.id === current
      ? undefined
      : {
          credentialId: credential.id,
          previousCredential: { id: current, expiresAtMs: nowMs + tokenLifetimeMs },
        };
  const gainedMs = nowMs + grantedMs - (record.deadlineMs ?? nowMs);
  // The next leader adds the unstored share to the stored deadline.
  const isStored = !record.asynchronous || change || Math.abs(gainedMs) >= grantedMs * unstoredShare;
  return {
    next: isStored ? { ...record, ...change, asynchronous: true, deadlineMs: nowMs + grantedMs } : undefined,
    deadlineAt: monotonicMs + grantedMs,
    heartbeatTimeoutMs,
  };
}

export interface Ending {
  readonly outcome: OutcomeName;
  /** Code of the server; the component's own outcomes have none. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly missing?: readonly MissingInput[];
  /** Only for Progressing. */
  readonly requeueAfterSeconds?: number;
}

/** The record after the run. The caller sets `nextAtMs`. */
export function endedRecord({ memory, nowMs, monotonicMs }: Facts, record: RunRecord, ending: Ending): RunRecord {
  const { outcome, reason, message, missing = [] } = ending;
  const startedAt = memory.run?.startedAt;
  const lastOutcome: LastOutcome = {
    seq: record.seq,
    outcome,
    reason: reason?.slice(0, 64),
    message: message?.slice(0, maxMessage),
    missing,
    endedAtMs: nowMs,
    sinceMs: record.lastOutcome?.outcome === outcome ? record.lastOutcome.sinceMs : nowMs,
    durationMs: Math.max(0, Math.round(startedAt === undefined ? 0 : monotonicMs - startedAt)),
  };
  return {
    ...withoutCredential(record),
    phase: 'Idle',
    // The component may have read other inputs than those at the start.
    inputsDigest: memory.inputsChanged ? undefined : record.inputsDigest,
    asynchronous: false,
    deadlineMs: undefined,
    attempt: attemptAfter(record, ending),
    lastOutcome,
  };
}

/** Accepted runs and calls that were not accepted end each other's count. */
function attemptAfter({ attempt, lastOutcome }: RunRecord, { outcome, reason }: Ending): number {
  if (outcome === 'Done') return 0;
  const isFirstOfItsKind = wasNotAccepted(lastOutcome?.reason) !== wasNotAccepted(reason);
  const attemptBefore = isFirstOfItsKind ? 0 : attempt;
  return outcome === 'Retry' ? attemptBefore + 1 : attemptBefore;
}

/** The record without the run: idle, with the values of `before`. The run number stays used. */
export const rolledBack = (
  record: RunRecord,
  before: Pick<RunRecord, 'inputsDigest' | 'operation'> | undefined,
  nextAtMs: number,
): RunRecord => ({
  ...withoutCredential(record),
  phase: 'Idle',
  inputsDigest: before?.inputsDigest,
  operation: before?.operation ?? record.operation,
  asynchronous: false,
  deadlineMs: undefined,
  nextAtMs,
});

/** No token may write with this record. */
export const withoutCredential = (record: RunRecord): RunRecord => ({
  ...record,
  credentialId: undefined,
  previousCredential: undefined,
});

/** The process that called the component ended or lost its state, and with it answer or outputs. */
export const interrupted: Ending = {
  outcome: 'Retry',
  reason: 'LeaseOver',
  message:
    'a restart, a change of the leader, or an internal error interrupted the run, and its answer or outputs are lost; the server retries',
};

/** The deadline has passed. */
export function leaseOver({ memory, registration }: Facts, record: RunRecord, run: ActiveRun): Ending {
  const { name, maxRunMs } = registration;
  const { deadlineAt, startedAt, heartbeatTimeoutMs } = run;
  const limit = `spec.maxRunSeconds of ComponentReconciler ${name}, ${maxRunMs / 1000} s`;
  // The sum in `extension` is rounded.
  const lastedMaximum = deadlineAt - startedAt > maxRunMs - 1;
  const rejectedCode = memory.rejectedReport?.last;
  const rejected = rejectedCode ? `; its last report was rejected (${rejectedCode})` : '';
  const found = 'the component reported no valid outcome';
  // A report answered 401 or 403 counts for no run: its sender need not be the component.
  const check = rejected
    ? 'check its log'
    : 'a report that was answered 401 or 403 does not count: check the answers in the log of the component';
  const timeout = heartbeatTimeoutMs === undefined ? '' : `, ${heartbeatTimeoutMs / 1000} s`;
  const post = 'the component must POST the outcome to callback of the call';
  const isDraining = record.credentialId === undefined;
  const message = lastedMaximum
    ? `${found} within ${limit}${rejected}${record.asynchronous ? `; ${post}` : ''}; ${check}; if its work takes longer, increase the field`
    : record.asynchronous && isDraining
      ? `${found} before the deadline of the run${rejected}; the entry is being deleted, so no heartbeat extends the run; ${check}; once a heartbeat is answered 403, the component must stop, and POST its outcome to callback of the call`
      : record.asynchronous
        ? `${found} or heartbeat within its heartbeat timeout (leaseSeconds${timeout})${rejected}; ${post}, and until then heartbeats in time, or with more leaseSeconds, which extend a run up to ${limit}; ${check}`
        : `${found} before the deadline of the run${rejected}; check its log; for longer work it must answer 202 and send heartbeats, which extend a run up to ${limit}`;
  return { outcome: 'Retry', reason: 'LeaseOver', message };
}
