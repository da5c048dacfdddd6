import { maxMessage } from '../../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../api/inventory/fields.ts';
import type { OutcomeName } from '../../../api/inventory/reconcile-run.ts';
import type { LastOutcome, RunRecord } from '../run-record.ts';
import type { Turn } from './turn.ts';

/** How a run ended. */
export interface Ending {
  readonly outcome: OutcomeName;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly missing?: readonly MissingInput[];
  readonly requeueAfterSeconds?: number;
}

/** The record once the run is over, but for when the next one is. */
export function endedRecord({ state, context }: Turn, record: RunRecord, ending: Ending): RunRecord {
  const { outcome, reason, message, missing = [] } = ending;
  const { nowMs, monotonicMs } = context;
  const tookMs = state.lastStart === undefined ? nowMs - (record.startedAtMs ?? nowMs) : monotonicMs - state.lastStart;
  const lastOutcome: LastOutcome = {
    seq: record.seq,
    outcome,
    reason: reason?.slice(0, 64),
    message: message?.slice(0, maxMessage),
    missing,
    endedAtMs: nowMs,
    durationMs: Math.max(0, Math.round(tookMs)),
  };
  return {
    ...withoutCredential(record),
    phase: 'Idle',
    // Nobody knows which inputs it was about.
    inputsDigest: state.strayed ? undefined : record.inputsDigest,
    asynchronous: false,
    leaseUntilMs: undefined,
    attempt: outcome === 'Done' ? 0 : record.attempt + (outcome === 'Retry' ? 1 : 0),
    lastOutcome,
  };
}

export const withoutCredential = (record: RunRecord): RunRecord => ({
  ...record,
  credentialId: undefined,
  previousCredential: undefined,
});
