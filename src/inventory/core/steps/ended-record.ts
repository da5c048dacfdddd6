import { maxMessage } from '../../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../api/inventory/fields.ts';
import type { OutcomeName } from '../../../api/inventory/reconcile-run.ts';
import { type LastOutcome, type RunRecord, wasNotAccepted } from '../run-record.ts';
import type { Transition } from './transition.ts';

/** How a run ended. */
export interface Ending {
  readonly outcome: OutcomeName;
  /** Code of the server; undefined for an outcome that the component chose. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly missing?: readonly MissingInput[];
  /** Only for Progressing. */
  readonly requeueAfterSeconds?: number;
}

/** The record after the run. `nextAtMs` stays as it is; the caller sets it. */
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

/** `attempt` after the run. A run that the component accepted and a call that it did not accept end each other's count. */
function attemptAfter({ attempt, lastOutcome }: RunRecord, { outcome, reason }: Ending): number {
  if (outcome === 'Done') return 0;
  const isFirstOfItsKind = wasNotAccepted(lastOutcome?.reason) !== wasNotAccepted(reason);
  const attemptBefore = isFirstOfItsKind ? 0 : attempt;
  return outcome === 'Retry' ? attemptBefore + 1 : attemptBefore;
}

/** The record without credentials, so that no token may write. */
export const withoutCredential = (record: RunRecord): RunRecord => ({
  ...record,
  credentialId: undefined,
  previousCredential: undefined,
});
