import type { InventoryCode } from '../../api/codes.ts';
import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import { alreadySatisfied, describeReason } from '../../api/inventory/describe-state.ts';
import { allHold } from './digest.ts';
import {
  type Ending,
  endedRecord,
  extension,
  interrupted,
  leaseOver,
  rolledBack,
  withoutCredential,
} from './endings.ts';
import type { Facts, MayRun, Step, StepOf } from './facts.ts';
import type { ActiveRun, Answer } from './memory.ts';
import { type RunRecord, wasNotAccepted } from './run-record.ts';
import { alreadySatisfiedRemedy } from './status.ts';
import { nextDelayMs, notAcceptedDelayMs, spacingOf, wakeReason } from './timing.ts';
import { isTimer, type Lane, lanes, mergeTriggers, type Trigger, trigger, triggerReasons } from './triggers.ts';

/**
 * What to do now. Pure, apart from `random`; never throws. The record says what happened, whichever
 * process wrote it; the memory is that of `FactsReader.refresh`.
 */
export function plan(facts: Facts): Step {
  const record = facts.stored?.record;
  const { run } = facts.memory;
  return record && run && record.phase !== 'Idle' ? planRun(facts, record, run) : planNext(facts, record);
}

function planRun(facts: Facts, record: RunRecord, run: ActiveRun): Step {
  const { mayRun, memory, nowMs, monotonicMs } = facts;
  if (run.isInterrupted) return end(facts, record, interrupted);
  if (run.answer) return onAnswer(facts, record, run, run.answer);
  if (isComponentAbandoned(mayRun))
    return { do: 'retire', ended: run.isUncalled ? undefined : endedRecord(facts, record, abandoned) };
  if (run.isUncalled) {
    if (mayRun.may === record.operation) return { do: 'call' };
    // For example, the entry was suspended meanwhile.
    const next = rolledBack(record, run.start?.before, nowMs);
    return repeat(facts, next, { at: monotonicMs, reason: wakeReason(next.lastOutcome?.outcome) });
  }
  if (isDraining(facts, record) && record.credentialId !== undefined) {
    // The run may report until its deadline, but no longer write. The stored deadline lacks the
    // unstored share of a heartbeat.
    const deadlineMs = nowMs + Math.max(0, run.deadlineAt - monotonicMs);
    return { do: 'store', next: { ...withoutCredential(record), deadlineMs } };
  }
  // The call has a time limit of its own.
  if (memory.isCalling) return { do: 'rest' };
  if (monotonicMs < run.deadlineAt) return { do: 'rest', at: run.deadlineAt };
  return end(facts, record, leaseOver(facts, record, run));
}

/** The entry is being deleted: the run may report its outcome, and no longer write. */
export const isDraining = ({ entry }: Facts, { operation }: RunRecord): boolean =>
  entry.deleting && operation === 'reconcile';

const abandoned: Ending = {
  outcome: 'Retry',
  reason: 'Abandoned',
  message: 'the component was abandoned during the run',
};

function onAnswer(facts: Facts, record: RunRecord, run: ActiveRun, answer: Answer): Step {
  const { nowMs, monotonicMs, random } = facts;
  switch (answer.kind) {
    case 'accepted':
      return { do: 'extend', ...extension(facts, record, run, answer.heartbeatTimeoutMs) };
    case 'failed':
      // The component may have run.
      return end(facts, record, { outcome: 'Retry', reason: answer.code, message: answer.message });
    case 'notAccepted': {
      const { code, message, retryAfterMs, probeDelayMs = 0 } = answer;
      const ended = endedRecord(facts, record, { outcome: 'Retry', reason: code, message });
      const delayMs = notAcceptedDelayMs(retryAfterMs, random);
      // With Retry-After, the next run waits for that time, unless the circuit breaker admits no
      // call then.
      const isTimed = code === 'Busy' && retryAfterMs !== undefined && probeDelayMs <= delayMs;
      const next: RunRecord = { ...ended, nextAtMs: nowMs + delayMs, heldBy: isTimed ? undefined : 'Unreachable' };
      return repeat(facts, next, { at: monotonicMs + delayMs, reason: triggerReasons.retry });
    }
    case 'notCalled': {
      const delayMs = notAcceptedDelayMs(answer.retryAfterMs, random);
      const next = rolledBack(record, run.start?.before, nowMs + delayMs);
      return repeat(facts, next, { at: monotonicMs + delayMs, reason: triggerReasons.retry });
    }
    case 'outcome':
      return onOutcome(facts, record, answer);
  }
}

function onOutcome(facts: Facts, record: RunRecord, { outcome, applied }: Extract<Answer, { kind: 'outcome' }>): Step {
  const { operation, phase, credentialId } = record;
  if (outcome.outcome === (operation === 'delete' ? 'Done' : 'Deleted')) {
    const allowed = operation === 'delete' ? 'Deleted' : 'Done';
    const message = `${outcome.outcome} is not an outcome of operation ${operation}; answer ${allowed}`;
    return end(facts, record, { outcome: 'Retry', reason: 'InvalidOutcome', message });
  }
  if (outcome.outcome === 'Deleted') return { do: 'retire', ended: endedRecord(facts, record, outcome) };
  if (applied) return end(facts, record, applied.problem ? endingOf(applied.problem) : outcome);
  const isOver = isDraining(facts, record) || isComponentAbandoned(facts.mayRun);
  const mayWrite = phase === 'Applying' || (credentialId !== undefined && !isOver);
  if (mayWrite && 'outputs' in outcome && outcome.outputs) return { do: 'apply', outputs: outcome.outputs };
  return end(facts, record, outcome, outcome.outcome === 'NotReady' ? outcome : undefined);
}

const endingOf = ({ code, message }: { readonly code: string; readonly message: string }): Ending => ({
  outcome: ruleCodes.has(code) ? 'Failed' : 'Retry',
  reason: code,
  message,
});

/** The component published outputs that it may not write, so a retry cannot succeed. */
const ruleCodes: ReadonlySet<string> = new Set<InventoryCode>(['ForeignPath', 'EntryTooLarge']);

/** Ends the run and schedules the next one, or retires an abandoned component. */
function end(
  facts: Facts,
  record: RunRecord,
  ending: Ending,
  notReady?: Extract<Outcome, { outcome: 'NotReady' }>,
): Step {
  const { mayRun, memory, nowMs, monotonicMs, random, registration } = facts;
  // What the component waits for may have been there all along; false if another process started it.
  const start = memory.run?.start;
  const heldAtStart = notReady && start && allHold(notReady.missing, start.entry.content, start.readers);
  const isSatisfied = heldAtStart === true && allHold(notReady?.missing ?? [], facts.entry.content, facts.readers);
  const ended = endedRecord(facts, record, isSatisfied ? { ...ending, reason: alreadySatisfied } : ending);
  if (isComponentAbandoned(mayRun)) return { do: 'retire', ended };
  const delayMs = nextDelayMs(ending, Math.max(0, ended.attempt - 1), registration, random);
  const followsAtOnce = entryTriggers(facts, ended).length > 0 || isAnyWanted(facts, ended);
  const next: RunRecord = { ...ended, nextAtMs: nowMs + (followsAtOnce ? 0 : delayMs), heldBy: heldBy(mayRun) };
  const wake = { at: monotonicMs + delayMs, reason: wakeReason(ending.outcome) };
  if (!isSatisfied || !notReady) return { do: 'end', next, wake };
  const { missing } = notReady;
  const found = describeReason({ state: 'NotReady', reason: alreadySatisfied, message: undefined, missing });
  return { do: 'end', next, wake, warning: `the component ${found}; ${alreadySatisfiedRemedy(missing)}` };
}

/** After a run that did not happen, unless its component was abandoned. */
function repeat({ mayRun }: Facts, next: RunRecord, wake: StepOf<'repeat'>['wake']): Step {
  if (isComponentAbandoned(mayRun)) return { do: 'retire', ended: undefined };
  return { do: 'repeat', next: { ...next, heldBy: heldBy(mayRun) ?? next.heldBy }, wake };
}

function planNext(facts: Facts, record: RunRecord | undefined): Step {
  const { mayRun, memory, monotonicMs } = facts;
  if (isComponentAbandoned(mayRun)) return record ? { do: 'retire', ended: undefined } : { do: 'rest' };
  if (!record && mayRun.may !== 'reconcile') return { do: 'rest' };
  const { triggers, at, lane } = nextRun(facts, record);
  const startAt = Math.max(at, earliestStart(facts));
  if (mayRun.may !== 'no' && !memory.isCalling && startAt <= monotonicMs)
    return { do: 'start', operation: mayRun.may, triggers, lane };
  const isUnreachable =
    record?.heldBy === 'Unreachable' && (wasNotAccepted(record.lastOutcome?.reason) || at <= monotonicMs);
  const held = heldBy(mayRun) ?? (isUnreachable ? 'Unreachable' : undefined);
  if (record && record.heldBy !== held) return { do: 'store', next: { ...record, heldBy: held } };
  return mayRun.may === 'no' || memory.isCalling ? { do: 'rest' } : { do: 'rest', at: startAt, lane };
}

/** An abandoned component has none: its record is removed. */
export const heldBy = (mayRun: MayRun): RunRecord['heldBy'] =>
  mayRun.may === 'no' && mayRun.why !== 'Abandoned' ? mayRun.why : undefined;

export const isComponentAbandoned = (mayRun: MayRun): boolean => mayRun.may === 'no' && mayRun.why === 'Abandoned';

/** Monotonic milliseconds. */
function earliestStart({ memory: { lastStart, recentStarts }, monotonicMs }: Facts): number {
  return lastStart === undefined ? Number.NEGATIVE_INFINITY : lastStart + spacingOf(recentStarts, monotonicMs);
}

interface NextRun {
  readonly triggers: readonly Trigger[];
  /** Monotonic milliseconds; Infinity if nothing wants a run. */
  readonly at: number;
  readonly lane: Lane;
}

/** Changes name the causes; the comparison of entry and record finds what no change named. */
function nextRun(facts: Facts, record: RunRecord | undefined): NextRun {
  const { memory, monotonicMs } = facts;
  const { pending, wake } = memory;
  const isAwake = record !== undefined && wake !== undefined && wake.at <= monotonicMs;
  const isCaused = isAnyWanted(facts, record);
  let triggers = isCaused || isAwake ? (pending?.triggers ?? []) : [];
  triggers = triggers.filter((found) => mayHaveArrived(found, facts, record));
  let at = isCaused ? (pending?.dueAt ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  let lane: Lane = isCaused ? (pending?.lane ?? lanes.time) : lanes.time;
  const [compared] = entryTriggers(facts, record);
  const { created, remote, deleting } = triggerReasons;
  const isExact = compared?.reason === created || compared?.reason === deleting;
  const namesCause = triggers.some(({ reason }) => (isExact ? reason === compared.reason : reason !== remote));
  if (compared && !namesCause) {
    triggers = mergeTriggers([compared], triggers);
    // A call that was not accepted or not made is repeated after its delay.
    const isDelayed = record && (wasNotAccepted(record.lastOutcome?.reason) || record.lastOutcome?.seq !== record.seq);
    at = Math.min(at, (isDelayed ? wake?.at : undefined) ?? monotonicMs);
    // Found, for example, by a new leader: the lane of waiting users stays free.
    if (compared.lane === lanes.input && lane > lanes.input) lane = lanes.input;
  }
  const unwatchedAt = unwatchedRunAt(facts, record);
  if (unwatchedAt <= monotonicMs) triggers = mergeTriggers(triggers, [trigger(remote, { detail: 'unwatched' })]);
  at = Math.min(at, unwatchedAt);
  if (record && wake) {
    if (isAwake) triggers = mergeTriggers(triggers, [trigger(wake.reason)]);
    at = Math.min(at, wake.at);
  }
  return { triggers, at, lane };
}

/** Any start of the component postpones this. Monotonic milliseconds; Infinity while it is watched. */
function unwatchedRunAt({ memory, mayRun }: Facts, record: RunRecord | undefined): number {
  const { unwatched, lastStart = Number.NEGATIVE_INFINITY } = memory;
  // A watched object does not repeat a Failed run.
  if (!unwatched || mayRun.may !== 'reconcile' || record?.lastOutcome?.outcome === 'Failed')
    return Number.POSITIVE_INFINITY;
  return Math.max(unwatched.since, lastStart) + unwatched.periodMs;
}

/** Whether a waiting change needs a run. Of timers that wait again, `wake` decides. */
const isAnyWanted = (facts: Facts, record: RunRecord | undefined): boolean =>
  facts.memory.pending?.triggers.some((waiting) => !isTimer(waiting) && isWanted(waiting, facts, record)) === true;

/** Whether the waiting triggers are due and start nothing: for example, the inputs changed back. */
export function isOutdated(facts: Facts): boolean {
  const { stored, memory, mayRun, monotonicMs } = facts;
  if (isComponentAbandoned(mayRun)) return true;
  if (!memory.pending || mayRun.may === 'no' || memory.pending.dueAt > monotonicMs) return false;
  const isAwake = memory.wake !== undefined && memory.wake.at <= monotonicMs;
  return stored !== undefined && !isAwake && !isAnyWanted(facts, stored.record);
}

/** Whether a trigger needs a run: always without a record, or if the entry needs one. */
export function isWanted({ reason }: Trigger, facts: Facts, record: RunRecord | undefined): boolean {
  if (!record) return true;
  // Other changes have their own trigger, so that the run's reason is true.
  if (reason === triggerReasons.inputArrived) return hasArrived(facts, record);
  if (entryTriggers(facts, record).length > 0) return true;
  switch (reason) {
    case 'Remote':
      // A watched object does not repeat a Failed run.
      return record.lastOutcome?.outcome !== 'Failed';
    case 'Forced':
      return true;
    default:
      return false;
  }
}

/** The trigger that follows from comparing the entry with the record, if any. */
function entryTriggers(facts: Facts, record: RunRecord | undefined): Trigger[] {
  const { created, inputChanged, inputArrived, deleting } = triggerReasons;
  if (!record) return [trigger(created)];
  if (facts.mayRun.may === 'delete' && record.operation !== 'delete') return [trigger(deleting)];
  if (facts.digest !== record.inputsDigest) {
    const isFirst = record.inputsDigest === undefined && record.lastOutcome === undefined;
    return [trigger(isFirst ? created : inputChanged)];
  }
  const detail = record.lastOutcome?.missing[0]?.path;
  return hasArrived(facts, record) ? [trigger(inputArrived, { detail })] : [];
}

/** A repeated run keeps the reason `InputArrived` only while it is true. */
const mayHaveArrived = ({ reason }: Trigger, facts: Facts, record: RunRecord | undefined): boolean =>
  reason !== triggerReasons.inputArrived || record?.lastOutcome?.outcome !== 'NotReady' || hasArrived(facts, record);

/** After MissingAlreadySatisfied, inputs arrive only once one was missing: no endless repeats. */
function hasArrived({ entry, readers, memory }: Facts, { lastOutcome: last }: RunRecord): boolean {
  if (last?.outcome !== 'NotReady' || (last.reason === alreadySatisfied && !memory.sawMissing)) return false;
  return allHold(last.missing, entry.content, readers);
}
