import { maxMessage } from '../../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../api/inventory/fields.ts';
import type { OutcomeName } from '../../../api/inventory/reconcile-run.ts';
import { type LastOutcome, type RunRecord, wasNotAccepted } from '../run-record.ts';
import type { Transition } from './transition.ts';

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
export function endedRecord({ state, context }: Transition, record: RunRecord, ending: Ending): RunRecord {
  const { outcome, reason, message, missing = [] } = ending;
  const { nowMs, monotonicMs } = context;
  const durationMs =
    state.lastStart === undefined ? nowMs - (record.startedAtMs ?? nowMs) : monotonicMs - state.lastStart;
  const lastOutcome: LastOutcome = {
    seq: record.seq,
    outcome,
    reason: reason?.slice(0, 64),
    message: message?.slice(0, maxMessage),
    missing,
    endedAtMs: nowMs,
    sinceMs: record.lastOutcome?.outcome === outcome ? record.lastOutcome.sinceMs : nowMs,
    durationMs: Math.max(0, Math.round(durationMs)),
  };
  return {
    ...withoutCredential(record),
    phase: 'Idle',
    // The component may have read other inputs than those at the start.
    inputsDigest: state.inputsChanged ? undefined : record.inputsDigest,
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

/** No token may write with this record. */
export const withoutCredential = (record: RunRecord): RunRecord => ({
  ...record,
  credentialId: undefined,
  previousCredential: undefined,
});
