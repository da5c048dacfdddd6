import { isDeepStrictEqual } from 'node:util';
import { alreadySatisfied, describeState } from '../../../api/inventory/describe-state.ts';
import type { MissingInput } from '../../../api/inventory/fields.ts';
import { abandonAnnotation, forceAnnotation } from '../../../api/inventory/names.ts';
import { formatTime } from '../../../kit/clock.ts';
import type { Effect, Inputs, KeyState, KeyStatus, NotRunReason, StepContext } from '../key-state.ts';
import { type LastOutcome, type RunRecord, type StoredRecord, wasNotAccepted } from '../run-record.ts';
import { spacingOf } from '../timing.ts';
import { lanes, reasonText, type Trigger, triggerReasons, withTriggers } from '../triggers.ts';
import { isTimer } from './wanted.ts';

/** The next state and the effects, while `step` handles one event. */
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

  /** The state has the record at once. */
  store(next: RunRecord, base: StoredRecord): void {
    this.addEffect({ kind: 'store', next, base });
    this.update({ stored: { record: next, resourceVersion: base.resourceVersion } });
  }

  addTriggers(...triggers: readonly Trigger[]): void {
    if (triggers.length > 0) this.update({ pending: withTriggers(this.state.pending, triggers, this.context) });
  }

  /** Enqueues a key without a run for its wake time or, if one may start, its pending triggers. */
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

  scheduleDeadline(): void {
    const { deadlineAt } = this.state;
    if (deadlineAt !== undefined) this.enqueueAt(deadlineAt, lanes.time, [triggerReasons.leaseOver]);
  }

  /** `at`: monotonic milliseconds. */
  enqueueAt(at: number, lane: Extract<Effect, { kind: 'enqueue' }>['lane'], reasons: readonly string[]): void {
    const { monotonicMs } = this.context;
    const delayMs = Math.max(0, at - monotonicMs, this.earliestStart() - monotonicMs);
    this.addEffect({ kind: 'enqueue', delayMs, lane, reasons });
  }

  /** Monotonic milliseconds. */
  earliestStart(): number {
    const { lastStart, recentStarts } = this.state;
    if (lastStart === undefined) return Number.NEGATIVE_INFINITY;
    return lastStart + spacingOf(recentStarts, this.context.monotonicMs);
  }

  /** Stores in `heldBy` why a due run does not start: `mayRun`, otherwise the circuit breaker. */
  recordUnavailableEndpoint(inputs: Inputs): void {
    const { stored } = this.state;
    if (this.#isDue()) this.#storeHeldBy(heldBy(inputs) ?? 'Unreachable');
    const { status } = this.state;
    // The text in the entry's status depends on `heldBy`, too.
    if (status && this.state.stored !== stored) this.addEffect({ kind: 'reportStatus', status });
  }

  #storeHeldBy(held: RunRecord['heldBy']): void {
    const { phase, stored } = this.state;
    const isWaiting = (phase === 'idle' || phase === 'queued') && stored?.record.phase === 'Idle';
    if (isWaiting && stored.record.heldBy !== held) this.store({ ...stored.record, heldBy: held }, stored);
  }

  #isDue(): boolean {
    const { pending, wake } = this.state;
    const { monotonicMs } = this.context;
    return [pending?.dueAt, wake?.at].some((at) => at !== undefined && at <= monotonicMs);
  }

  /** The server repeats a call that was not accepted, even if the inputs have changed back. */
  #isUnreachable(): boolean {
    const record = this.state.stored?.record;
    return record?.heldBy === 'Unreachable' && (wasNotAccepted(record.lastOutcome?.reason) || this.#isDue());
  }

  /** Reports a changed status, or the end of a run, and stores why no run may start. */
  report(inputs: Inputs, hasEnded = false): void {
    this.#storeHeldBy(heldBy(inputs) ?? (this.#isUnreachable() ? 'Unreachable' : undefined));
    const status = statusOf(this.state, inputs);
    if (!hasEnded && sameStatus(status, this.state.status)) return;
    this.update({ status });
    this.addEffect({ kind: 'reportStatus', status });
  }
}

/** An abandoned component has none: its record is removed. */
export function heldBy({ mayRun }: Pick<Inputs, 'mayRun'>): RunRecord['heldBy'] {
  return mayRun.may === 'no' && mayRun.why !== 'Abandoned' ? mayRun.why : undefined;
}

type StatusSource = Pick<KeyState, 'stored' | 'pending' | 'cause' | 'status' | 'rejectedReport'>;

/** From the current run, or the last outcome. Done counts only for the current inputs. */
function statusOf(
  { stored, pending, cause, status, rejectedReport }: StatusSource,
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
  const isSuspended = mayRun.may === 'no';
  const isForced = isOnlyForced([...(cause?.triggers ?? []), ...(pending?.triggers ?? [])]);
  const outdatedReason = isForced ? 'Forced' : 'InputsChanged';
  if (mayRun.may === 'delete' || (record?.operation === 'delete' && !(isSuspended && record.phase === 'Idle')))
    return statusWith('Deleting', record ? deletionDetail(record, rejectedReport) : noDetail);
  const statusWithoutRun = (): KeyStatus => {
    const isCurrent = status?.observedInputs === digest && !wasNotAccepted(status.reason) && !isSuspended;
    if (record && isCurrent && isBrieflyBusy(record)) return status;
    if (last?.outcome === 'Done' && observedInputs === digest) return statusWith('Done', last);
    if (isSuspended) return statusWith('Suspended', suspendedDetail(last));
    switch (last?.outcome) {
      case 'Done':
        return statusWith('Progressing', { reason: outdatedReason });
      case 'NotReady':
      case 'Progressing':
        return statusWith(last.outcome, last);
      case 'Failed':
        return statusWith('Failed', withRemedy(last, `${repeatHint(record?.component ?? '')} to repeat the run`));
      case 'Retry':
        return statusWith('Retrying', last);
      default:
        return statusWith('Progressing', { reason: 'Pending' });
    }
  };
  const shown = statusWithoutRun();
  const isAsynchronous = record?.phase === 'Running' && record.asynchronous;
  return isAsynchronous && !isTrueDuringRun(shown, digest)
    ? statusWith('Progressing', runningDetail(record, rejectedReport))
    : shown;
}

/** Whether the status holds during a run: Done, a run follows, or Progressing with these inputs. */
const isTrueDuringRun = ({ state, reason, observedInputs }: KeyStatus, digest: string): boolean =>
  state === 'Done' || isOutdatedReason(reason) || (state === 'Progressing' && observedInputs === digest && !reason);

/** Changes at most twice a run (rejected report, next heartbeat), so that it costs few writes. */
const runningDetail = (
  { startedAtMs, lastOutcome }: RunRecord,
  rejected: KeyState['rejectedReport'],
): StatusDetail => ({
  reason: 'Running',
  message: [
    startedAtMs === undefined ? 'running' : `running since ${formatTime(startedAtMs)}`,
    ...rejectionTexts(rejected),
    ...(lastOutcome ? [lastOutcomeText(lastOutcome)] : []),
  ].join('; '),
});

function rejectionTexts(rejected: KeyState['rejectedReport']): readonly string[] {
  if (!rejected?.shown) return [];
  const { code, atMs } = rejected.shown;
  return [`report rejected (${code}) at ${formatTime(atMs)}, see the log of the component`];
}

/** Why the component is not Done. Ready says how a user resumes the entry. */
export const suspendedDetail = (last: LastOutcome | undefined) => ({
  reason: 'Suspended',
  message: last === undefined ? 'no run has ended' : last.outcome === 'Done' ? 'a run is due' : lastOutcomeText(last),
});

export const lastOutcomeText = (last: LastOutcome): string =>
  `last outcome: ${describeState({ ...last, state: last.outcome })}`;

/** What a teardown waits for: the current run, or what the last teardown reported. */
function deletionDetail(record: RunRecord, rejected: KeyState['rejectedReport']): StatusDetail {
  const { component, operation, asynchronous, phase, startedAtMs, deadlineMs } = record;
  const isAsynchronous = phase === 'Running' && asynchronous && startedAtMs !== undefined && deadlineMs !== undefined;
  if (operation === 'delete')
    return isAsynchronous
      ? {
          reason: 'Running',
          message: ['tearing down', ...rejectionTexts(rejected), ...lastTeardownTexts(record)].join('; '),
        }
      : teardownDetail(record);
  if (!isAsynchronous) return noDetail;
  // Heartbeats do not extend a run that began before the deletion, so this is final.
  const found = `the teardown waits for the run that began at ${formatTime(startedAtMs)}; it ends at ${formatTime(deadlineMs)} at the latest`;
  return {
    reason: 'Running',
    message: [found, ...rejectionTexts(rejected), abandonHint(component)].join('; '),
  };
}

/** The teardown before the current run, with what a user can do about it. */
function lastTeardownTexts({ component, lastOutcome: last, history }: RunRecord): readonly string[] {
  const [previous] = history;
  if (last === undefined || previous?.seq !== last.seq || previous.operation !== 'delete') return [];
  return [lastOutcomeText(last), teardownRemedy(last, component)].filter((text) => text !== undefined);
}

/** The last teardown with its remedy, unless a later run was started. */
function teardownDetail({ component, seq, lastOutcome: last }: RunRecord): StatusDetail {
  if (last?.seq !== seq) return noDetail;
  const reason = last.reason ?? last.outcome;
  const remedy = teardownRemedy(last, component);
  return remedy === undefined ? { ...last, reason } : { ...withRemedy(last, remedy), reason };
}

const withRemedy = (last: LastOutcome, remedy: string): LastOutcome => ({
  ...last,
  message: last.message ? `${last.message}; ${remedy}` : remedy,
});

/** How a user repeats a Failed run. */
const repeatHint = (component: string): string => `annotate the entry with ${forceAnnotation(component)}=NEW-VALUE`;

/** For a teardown that failed, or waits for what already holds. */
function teardownRemedy({ outcome, reason, missing }: LastOutcome, component: string): string | undefined {
  if (outcome === 'Failed')
    return `${repeatHint(component)} to repeat the teardown, or with ${abandonAnnotation(component)}=REASON to finish without it`;
  if (reason === alreadySatisfied) return `${alreadySatisfiedRemedy(missing)}; ${abandonHint(component)}`;
  return outcome === 'Retry' && reason !== undefined ? abandonHint(component) : undefined;
}

/** The entry does not show which components read a path. */
export const alreadySatisfiedRemedy = (missing: readonly MissingInput[]): string =>
  missing.every(({ want }) => want === 'noReaders')
    ? 'while other objects use what the component created, the component must answer Retry instead of NotReady'
    : 'check how the component reads the entry';

export const abandonHint = (component: string): string =>
  `to finish without the teardown, annotate the entry with ${abandonAnnotation(component)}=REASON`;

/** The inputs or the force annotation changed after Done. */
export const isOutdatedReason = (reason: string | undefined): boolean =>
  reason === 'InputsChanged' || reason === 'Forced';

const isOnlyForced = (triggers: readonly Trigger[]): boolean =>
  triggers.length > 0 && triggers.every((cause) => cause.reason === triggerReasons.forced || isTimer(cause));

/** A current status shows answers 429 or 503 after this many in a row, */
const shownBusyAnswers = 5;
/** or at once if the next call is further away than this. */
const shownBusyDelayMs = 60_000;

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

function observedInputsOf(record: RunRecord, cause: KeyState['cause']): string | undefined {
  return record.phase === 'Idle' || record.seq === record.lastOutcome?.seq
    ? record.inputsDigest
    : cause?.before.inputsDigest;
}

export const stateWithoutRun: Readonly<Record<Exclude<NotRunReason, 'Suspended'>, KeyStatus['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};
