import { isDeepStrictEqual } from 'node:util';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Effect, Inputs, KeyState, KeyStatus, NotRunReason, StepContext } from '../step.ts';
import { spacingOf } from '../timing.ts';
import { lanes, reasonText, type Trigger, triggerReasons, withTriggers } from '../triggers.ts';

/** Collects the next state and the effects while `step` handles one event. */
export class Transition {
  state: KeyState;
  readonly effects: Effect[] = [];
  readonly context: StepContext;

  constructor(state: KeyState, context: StepContext) {
    this.state = state;
    this.context = context;
  }

  update(change: Partial<KeyState>): void {
    this.state = { ...this.state, ...change };
  }

  addEffect(effect: Effect): void {
    this.effects.push(effect);
  }

  /** Requests a write of the record. The state contains it immediately. */
  store(next: RunRecord, base: StoredRecord): void {
    this.addEffect({ kind: 'store', next, base });
    this.update({ stored: { record: next, resourceVersion: base.resourceVersion } });
  }

  addTriggers(...triggers: readonly Trigger[]): void {
    if (triggers.length > 0) this.update({ pending: withTriggers(this.state.pending, triggers, this.context) });
  }

  /**
   * Enqueues a key without a current run for its pending triggers or its wake time, whichever is earlier. Pending triggers wait if no run
   * may start.
   */
  scheduleNext({ mayRun }: Pick<Inputs, 'mayRun'>): void {
    const { pending, wake } = this.state;
    const isQueued = pending !== undefined && mayRun.may !== 'no';
    this.update({ phase: isQueued ? 'queued' : 'idle' });
    if (isQueued && (!wake || pending.dueAt <= wake.at)) {
      this.enqueueAt(pending.dueAt, pending.lane, pending.triggers.map(reasonText));
    } else if (wake) {
      this.enqueueAt(wake.at, lanes.time, [wake.reason]);
    }
  }

  /** Enqueues the key for the deadline of the current run. */
  scheduleDeadline(): void {
    const { deadlineAt } = this.state;
    if (deadlineAt !== undefined) this.enqueueAt(deadlineAt, lanes.time, [triggerReasons.leaseOver]);
  }

  /** Enqueues the key for a monotonic instant, but not before `earliestStart`. */
  enqueueAt(at: number, lane: Extract<Effect, { kind: 'enqueue' }>['lane'], reasons: readonly string[]): void {
    const { monotonicMs } = this.context;
    const delayMs = Math.max(0, at - monotonicMs, this.earliestStart() - monotonicMs);
    this.addEffect({ kind: 'enqueue', delayMs, lane, reasons });
  }

  /** Earliest time of the next start, monotonic milliseconds; -Infinity before the first start. */
  earliestStart(): number {
    const { lastStart, recentStarts } = this.state;
    if (lastStart === undefined) return Number.NEGATIVE_INFINITY;
    return lastStart + spacingOf(recentStarts, this.context.monotonicMs);
  }

  /** Reports the status if it changed or a run has ended. */
  report(inputs: Inputs, hasEnded = false): void {
    const status = statusOf(this.state, inputs);
    if (!hasEnded && sameStatus(status, this.state.status)) return;
    this.update({ status });
    this.addEffect({ kind: 'reportStatus', status });
  }
}

type StatusSource = Pick<KeyState, 'stored' | 'cause' | 'status'>;

/** The component's status from its last outcome. Done counts only for the current inputs. */
function statusOf(
  { stored, cause, status }: StatusSource,
  { digest, mayRun }: Pick<Inputs, 'digest' | 'mayRun'>,
): KeyStatus {
  const record = stored?.record;
  const last = record?.lastOutcome;
  const observedInputs = record && observedInputsOf(record, cause);
  const statusWith = (state: KeyStatus['state'], { reason, message, missing = [] }: StatusDetail): KeyStatus => ({
    state,
    reason,
    message,
    missing,
    observedInputs,
    livelock: status?.livelock,
  });
  if (mayRun.may === 'no' && mayRun.why !== 'Suspended')
    return statusWith(stateWithoutRun[mayRun.why], { reason: mayRun.why });
  if (mayRun.may === 'delete' || record?.operation === 'delete') {
    const isLastOfDelete = record?.operation === 'delete' && last?.seq === record.seq;
    return statusWith('Deleting', isLastOfDelete ? last : noDetail);
  }
  const reason = mayRun.may === 'no' ? 'Suspended' : undefined;
  switch (last?.outcome) {
    case 'Done':
      return observedInputs === digest
        ? statusWith('Done', last)
        : statusWith('Progressing', { reason: reason ?? 'InputsChanged' });
    case 'NotReady':
    case 'Progressing':
    case 'Failed':
      return statusWith(last.outcome, last);
    case 'Retry':
      return statusWith('Retrying', last);
    default:
      return statusWith('Progressing', { reason: reason ?? 'Pending' });
  }
}

type StatusDetail = { readonly [Field in 'reason' | 'message' | 'missing']?: KeyStatus[Field] | undefined };

const noDetail: StatusDetail = {};

function sameStatus(a: KeyStatus, b: KeyStatus | undefined): boolean {
  return (
    b !== undefined &&
    a.state === b.state &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedInputs === b.observedInputs &&
    a.livelock === b.livelock &&
    (a.missing === b.missing || isDeepStrictEqual(a.missing, b.missing))
  );
}

/** Inputs digest of the last run that ended; undefined if unknown. */
function observedInputsOf(record: RunRecord, cause: KeyState['cause']): string | undefined {
  return record.phase === 'Idle' || record.seq === record.lastOutcome?.seq
    ? record.inputsDigest
    : cause?.before.inputsDigest;
}

/** State of a component that may not run. The status has the reason `why`. */
const stateWithoutRun: Readonly<Record<Exclude<NotRunReason, 'Suspended'>, KeyStatus['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};
