import { maxMessage } from '../../../api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../api/inventory/fields.ts';
import type { OutcomeName } from '../../../api/inventory/reconcile-run.ts';
import type { LastOutcome, RunRecord } from '../run-record.ts';
import type { Inputs } from '../step.ts';
import { trigger, triggerReasons } from '../triggers.ts';
import type { Transition } from './transition.ts';
import { newsOf } from './wanted.ts';

export const isAbandoned = ({ mayRun }: Inputs): boolean => mayRun.may === 'no' && mayRun.why === 'Abandoned';

/** Of a run that is on by then. */
const abandoned: Ending = { outcome: 'Retry', reason: 'Abandoned', message: 'nobody waits for it any more' };

/** What was never run has nothing to tear down, and for what was abandoned nobody waits. True when that settles it. */
export function goneFor(turn: Transition, inputs: Inputs): boolean {
  const { stored } = turn.state;
  if (isAbandoned(inputs)) retire(turn);
  else if (inputs.mayRun.may === 'delete' && !stored)
    turn.become({ phase: 'gone', pending: undefined, wake: undefined });
  else return false;
  turn.report(inputs);
  return true;
}

/** The outputs go, then the record: nothing of the component is left, no credential of it is good. What the record was is kept, to know what comes late. */
export function retire(turn: Transition, ended?: RunRecord): void {
  const { stored } = turn.state;
  if (stored) turn.do({ kind: 'retire', base: stored, ended });
  turn.become({
    phase: 'gone',
    pending: undefined,
    doing: undefined,
    wake: undefined,
    leaseAt: undefined,
    outcome: undefined,
  });
}

/** The entry goes. Whatever is on loses its credential, and its end is waited for before the component is asked to delete. */
export function onDeleting(turn: Transition, inputs: Inputs): void {
  const { phase, stored } = turn.state;
  const asked = trigger(triggerReasons.deleting);
  switch (phase) {
    case 'gone':
      return;
    case 'idle':
    case 'queued':
      if (goneFor(turn, inputs)) return;
      // Not to be deleted by anybody here: it was never run, or may not be now.
      if (!stored) turn.become({ phase: 'gone', pending: undefined, wake: undefined });
      else turn.want(...newsOf(inputs, stored.record));
      if (stored) turn.settle(inputs);
      break;
    case 'starting':
    case 'applying':
    case 'draining':
      turn.want(asked);
      break;
    case 'running':
      if (isAbandoned(inputs)) {
        retire(turn, stored && endedRecord(turn, stored.record, abandoned));
      } else if (stored?.record.operation === 'reconcile') {
        turn.want(asked);
        // Somebody else is writing its outputs: it has no credential any more.
        if (stored.record.phase !== 'Running') break;
        turn.become({ phase: 'draining' });
        turn.store({ ...stored.record, credentialId: undefined, previousCredential: undefined }, stored);
      }
      break;
  }
  turn.report(inputs);
}

/** How a run ended. */
export interface Ending {
  readonly outcome: OutcomeName;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly missing?: readonly MissingInput[];
  readonly requeueAfterSeconds?: number;
}

/** The record once the run is over, but for when the next one is. */
export function endedRecord({ state, context }: Transition, record: RunRecord, ending: Ending): RunRecord {
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
