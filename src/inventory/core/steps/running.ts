import type { InventoryCode } from '../../../api/codes.ts';
import type { Outcome } from '../../../api/inventory/contract/outcome.ts';
import type { RunRecord } from '../run-record.ts';
import type { Inputs, KeyEventOf, OutcomeWithOutputs } from '../step.ts';
import { nextDelayMs, notAcceptedDelayMs, tokenLifetimeMs, unstoredShare, wakeReason } from '../timing.ts';
import { mergeTriggers, type Trigger, triggerReasons } from '../triggers.ts';
import { type Ending, endedRecord, isAbandoned, retire, withoutCredential } from './drain.ts';
import { rolledBack } from './start.ts';
import type { Transition } from './transition.ts';
import { alreadySatisfied, entryTriggers, isWanted } from './wanted.ts';

/** Handles a 202: the component continues asynchronously and must report within `leaseMs`. */
export function onAccepted(transition: Transition, { leaseMs }: KeyEventOf<'accepted'>): void {
  if (isRunning(transition)) transition.addEffect(answeredEffect);
  extendDeadline(transition, leaseMs, {});
}

/** Handles a heartbeat. A new credential replaces the current one, which may still write for the maximum lifetime of a token. */
export function onHeartbeat(transition: Transition, { leaseMs, credential }: KeyEventOf<'heartbeat'>): void {
  const current = transition.state.stored?.record.credentialId;
  const isRefresh = credential !== undefined && current !== undefined && credential.id !== current;
  const expiresAtMs = transition.context.nowMs + tokenLifetimeMs;
  extendDeadline(
    transition,
    leaseMs,
    isRefresh ? { credentialId: credential.id, previousCredential: { id: current, expiresAtMs } } : {},
  );
}

function extendDeadline(
  transition: Transition,
  leaseMs: number,
  change: Partial<Pick<RunRecord, 'credentialId' | 'previousCredential'>>,
): void {
  const { stored, lastStart } = transition.state;
  if (!stored || !isRunning(transition)) return;
  const { nowMs, monotonicMs, registration } = transition.context;
  const leftMs = (lastStart ?? monotonicMs) + registration.maxRunMs - monotonicMs;
  const grantedMs = Math.max(0, Math.min(leaseMs, leftMs));
  transition.update({ deadlineAt: monotonicMs + grantedMs });
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

/** Handles the outcome of the current run, from an answer or a report. */
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

const answeredEffect = { kind: 'endpoint', verdict: 'answered', retryAfterMs: undefined } as const;

const hasOutputs = (outcome: Outcome): outcome is OutcomeWithOutputs & Required<Pick<OutcomeWithOutputs, 'outputs'>> =>
  'outputs' in outcome && outcome.outputs !== undefined;

/** Ends the run after its outputs were written or rejected. */
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

/** Codes after which a retry cannot succeed: the component published outputs that it may not write. */
const ruleCodes: ReadonlySet<string> = new Set<InventoryCode>(['ForeignPath', 'ForeignSecret', 'EntryTooLarge']);

/** Ends the run as Retry: the component may have run, but there is no usable answer. */
export function onCallFailed(transition: Transition, { code, message, inputs }: KeyEventOf<'callFailed'>): void {
  if (!isRunning(transition)) return;
  transition.addEffect(answeredEffect);
  finish(transition, { outcome: 'Retry', reason: code, message }, inputs, undefined);
}

/** Ends the current run as Retry with the reason LeaseOver. */
export function expireRun(transition: Transition, inputs: Inputs): void {
  finish(
    transition,
    {
      outcome: 'Retry',
      reason: 'LeaseOver',
      message: 'the component did not answer or report before the deadline of the run',
    },
    inputs,
    undefined,
  );
}

const isRunning = ({ state: { phase, stored } }: Transition): boolean =>
  stored !== undefined && (phase === 'running' || phase === 'draining');

/**
 * Handles a call that the component did not accept: rolls the record back and queues the key again. The run number stays used. Retires the
 * key if the component was abandoned.
 */
export function onNotAccepted(
  transition: Transition,
  { retryAfterMs, notCalled, inputs }: KeyEventOf<'notAccepted'>,
): void {
  const { stored, cause, pending } = transition.state;
  const { nowMs, monotonicMs, random } = transition.context;
  if (!stored || !isRunning(transition)) return;
  if (!notCalled) transition.addEffect({ kind: 'endpoint', verdict: 'failed', retryAfterMs });
  if (isAbandoned(inputs)) {
    retire(transition);
    transition.report(inputs);
  } else {
    const delayMs = notAcceptedDelayMs(retryAfterMs, random);
    const atMs = nowMs + delayMs;
    transition.store(rolledBack(stored.record, cause?.before, atMs), stored);
    const wake = { at: monotonicMs + delayMs, reason: triggerReasons.retry };
    transition.update({ phase: 'idle', cause: undefined, deadlineAt: undefined, pending: undefined, wake });
    // New triggers wait as well, because the endpoint would reject their run, too.
    transition.addTriggers(
      ...mergeTriggers(cause?.triggers ?? [], pending?.triggers ?? []).map((delayed) => ({ ...delayed, atMs })),
    );
    transition.scheduleNext(inputs);
    transition.report(inputs);
  }
}

/** Ends the current run: stores its outcome and schedules the next run. Retires the key if the component was abandoned. */
function finish(transition: Transition, ending: Ending, inputs: Inputs, missing: MissingCheck): void {
  const { stored } = transition.state;
  if (!stored) return;
  if (isAbandoned(inputs)) {
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
  const delayMs = nextDelayMs(ending, stored.record.attempt, registration, random);
  transition.store({ ...ended, nextAtMs: nowMs + (next.length > 0 ? 0 : delayMs) }, stored);
  transition.update({
    phase: 'idle',
    pending: undefined,
    cause: undefined,
    deadlineAt: undefined,
    outcome: undefined,
    wake: { at: monotonicMs + delayMs, reason: wakeReason(ending.outcome) },
  });
  transition.report(endInputs, true);
  if (isAlreadySatisfied)
    transition.addEffect({ kind: 'warn', code: alreadySatisfied, message: alreadySatisfiedMessage(ending) });
  transition.addTriggers(...next);
  transition.scheduleNext(inputs);
}

const alreadySatisfiedMessage = ({ missing = [] }: Ending): string =>
  `the component reported inputs as missing that were not missing when it was called: ${missing.map(({ path }) => path).join(', ')}; check how it reads the entry`;

/** Triggers of the next run: those that arrived during this run and still need one, and those that follow from the entry. */
function nextTriggers({ state }: Transition, inputs: Inputs, ended: RunRecord): readonly Trigger[] {
  const pending = (state.pending?.triggers ?? []).filter(
    (arrived) => !timerReasons.has(arrived.reason) && isWanted(arrived, inputs, ended),
  );
  const fromEntry = entryTriggers(inputs, ended);
  // A pending trigger names the cause more precisely than a comparison of digests.
  const namesCause = pending.some(({ reason }) => reason !== triggerReasons.remote && reason !== triggerReasons.forced);
  return namesCause && fromEntry[0]?.reason !== triggerReasons.deleting ? pending : mergeTriggers(fromEntry, pending);
}

/** Reasons that the run that just ended has fulfilled. */
const timerReasons: ReadonlySet<string> = new Set([
  triggerReasons.interval,
  triggerReasons.requeue,
  triggerReasons.retry,
  triggerReasons.leaseOver,
]);
