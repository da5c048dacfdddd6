import { isDeepStrictEqual } from 'node:util';
import type { Effect, Inputs, KeyState, KeyStatus, NotRunReason, StepContext } from '../key-state.ts';
import { type RunRecord, type StoredRecord, wasNotAccepted } from '../run-record.ts';
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

  /** Stores that a due run waits for the endpoint. A record whose last call was not accepted says so already. */
  hold(inputs: Inputs): void {
    const isKnown = wasNotAccepted(this.state.stored?.record.lastOutcome?.reason);
    if (!isKnown && this.#isDue()) this.#storeHold(heldBy(inputs) ?? 'Unreachable');
  }

  #storeHold(held: RunRecord['heldBy']): void {
    const { phase, stored } = this.state;
    const isWaiting = (phase === 'idle' || phase === 'queued') && stored?.record.phase === 'Idle';
    if (isWaiting && stored.record.heldBy !== held) this.store({ ...stored.record, heldBy: held }, stored);
  }

  #isDue(): boolean {
    const { pending, wake } = this.state;
    const { monotonicMs } = this.context;
    return [pending?.dueAt, wake?.at].some((at) => at !== undefined && at <= monotonicMs);
  }

  /** Reports the status if it changed or a run has ended. Stores why no run may start, if that changed. */
  report(inputs: Inputs, hasEnded = false): void {
    const isUnreachable = this.state.stored?.record.heldBy === 'Unreachable' && this.#isDue();
    this.#storeHold(heldBy(inputs) ?? (isUnreachable ? 'Unreachable' : undefined));
    const status = statusOf(this.state, inputs);
    if (!hasEnded && sameStatus(status, this.state.status)) return;
    this.update({ status });
    this.addEffect({ kind: 'reportStatus', status });
  }
}

/** Why no run may start: `heldBy` of a record. The record of an abandoned component is removed. */
export function heldBy({ mayRun }: Pick<Inputs, 'mayRun'>): RunRecord['heldBy'] {
  return mayRun.may === 'no' && mayRun.why !== 'Abandoned' ? mayRun.why : undefined;
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
  if (record && status && reason === undefined && isBrieflyBusy(record)) {
    const isOutdated = status.state === 'Done' && status.observedInputs !== digest;
    return isOutdated ? { ...status, ...outdated } : status;
  }
  switch (last?.outcome) {
    case 'Done':
      return observedInputs === digest
        ? statusWith('Done', last)
        : statusWith('Progressing', { reason: reason ?? outdated.reason });
    case 'NotReady':
    case 'Progressing':
    case 'Failed':
      return statusWith(last.outcome, last);
    case 'Retry':
      return statusWith('Retrying', last);
    default:
      if (reason === undefined && record?.asynchronous) return statusWith('Progressing', firstRunAccepted);
      return statusWith('Progressing', { reason: reason ?? 'Pending' });
  }
}

/** Status of a component during its first run, once it has answered 202. */
const firstRunAccepted = { reason: 'Running', message: 'answered 202, and has not reported its outcome' } as const;

/** Status of a component whose last run was Done, with other inputs. */
const outdated = { state: 'Progressing', reason: 'InputsChanged', message: undefined } as const;

/** Number of answers 429 or 503 in a row, and the delay that one asks for, in milliseconds, from which on the status shows them. */
const shownBusyAnswers = 5;
const shownBusyDelayMs = 60_000;

/** Whether the component was busy in its last calls, so that its status stays as it was. */
const isBrieflyBusy = ({ phase, attempt, nextAtMs, lastOutcome }: RunRecord): boolean =>
  lastOutcome?.reason === 'Busy' &&
  attempt < shownBusyAnswers &&
  (phase !== 'Idle' || (nextAtMs ?? 0) - lastOutcome.endedAtMs <= shownBusyDelayMs);

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
export const stateWithoutRun: Readonly<Record<Exclude<NotRunReason, 'Suspended'>, KeyStatus['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};
