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
  extend(transition, leaseMs, {});
}

/** Handles a heartbeat. A new credential replaces the current one, which stays valid until it expires. */
export function onHeartbeat(transition: Transition, { leaseMs, credential }: KeyEventOf<'heartbeat'>): void {
  const current = transition.state.stored?.record.credentialId;
  const isRefresh = credential !== undefined && current !== undefined && credential.id !== current;
  const expiresAtMs = transition.context.nowMs + tokenLifetimeMs;
  extend(
    transition,
    leaseMs,
    isRefresh ? { credentialId: credential.id, previousCredential: { id: current, expiresAtMs } } : {},
  );
}

function extend(
  transition: Transition,
  leaseMs: number,
  change: Partial<Pick<NonNullable<Transition['state']['stored']>['record'], 'credentialId' | 'previousCredential'>>,
): void {
  const { stored, lastStart } = transition.state;
  if (!stored || !isRunning(transition)) return;
  const { nowMs, monotonicMs, registration } = transition.context;
  const leftMs = (lastStart ?? monotonicMs) + registration.maxRunMs - monotonicMs;
  const grantedMs = Math.max(0, Math.min(leaseMs, leftMs));
  transition.update({ deadlineAt: monotonicMs + grantedMs });
  const { record } = stored;
  const gainedMs = nowMs + grantedMs - (record.leaseUntilMs ?? nowMs);
  // The stored deadline serves the next leader, which adds the unstored share.
  const isWorthStoring =
    !record.asynchronous || 'credentialId' in change || Math.abs(gainedMs) >= grantedMs * unstoredShare;
  if (isWorthStoring)
    transition.store({ ...record, ...change, asynchronous: true, leaseUntilMs: nowMs + grantedMs }, stored);
  transition.scheduleDeadline();
}

type Missing = KeyEventOf<'outcome'>['missing'];

export function onOutcome(transition: Transition, { seq, outcome, inputs, missing }: KeyEventOf<'outcome'>): void {
  const { phase, stored } = transition.state;
  if (!stored || stored.record.seq !== seq || (phase !== 'running' && phase !== 'draining')) return;
  if (!stored.record.asynchronous) transition.addEffect(answeredEffect);
  const { operation } = stored.record;
  if (outcome.outcome === (operation === 'delete' ? 'Done' : 'Deleted')) {
    const message = `${outcome.outcome} is not an outcome of operation ${operation}`;
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

export function onApplied(transition: Transition, { refusal, inputs }: KeyEventOf<'applied'>): void {
  const { phase, outcome } = transition.state;
  if (phase !== 'applying' || !outcome) return;
  finish(transition, refusal ? endingOfRefusal(refusal) : outcome, inputs, undefined);
}

const endingOfRefusal = ({ code, message }: { readonly code: string; readonly message: string }): Ending => ({
  outcome: ruleCodes.has(code) ? 'Failed' : 'Retry',
  reason: code,
  message,
});

/** A retry cannot succeed: the component wrote something that it may not write. */
const ruleCodes: ReadonlySet<string> = new Set<InventoryCode>(['ForeignPath', 'ForeignSecret', 'EntryTooLarge']);

export function onCallFailed(transition: Transition, { code, message, inputs }: KeyEventOf<'callFailed'>): void {
  if (!isRunning(transition)) return;
  transition.addEffect(answeredEffect);
  finish(transition, { outcome: 'Retry', reason: code, message }, inputs, undefined);
}

export function onDeadline(transition: Transition, { inputs }: KeyEventOf<'deadline'>): void {
  const { deadlineAt } = transition.state;
  if (!isRunning(transition)) return;
  if (deadlineAt !== undefined && deadlineAt > transition.context.monotonicMs) transition.scheduleDeadline();
  else expireRun(transition, inputs);
}

/** Ends a run whose deadline has passed. */
export function expireRun(transition: Transition, inputs: Inputs): void {
  finish(
    transition,
    { outcome: 'Retry', reason: 'LeaseOver', message: 'the component did not report before the deadline of the run' },
    inputs,
    undefined,
  );
}

const isRunning = ({ state: { phase, stored } }: Transition): boolean =>
  stored !== undefined && (phase === 'running' || phase === 'draining');

/**
 * Handles a call that the component did not accept. The run number and the token are used up. Everything else is restored, and the key is
 * queued again.
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
    // New triggers wait as well: the endpoint would reject their run too.
    transition.addTriggers(
      ...mergeTriggers(cause?.triggers ?? [], pending?.triggers ?? []).map((one) => ({ ...one, atMs })),
    );
    transition.scheduleNext(inputs);
    transition.report(inputs);
  }
}

function finish(transition: Transition, ending: Ending, inputs: Inputs, missing: Missing): void {
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
  `the component waits for inputs that were present when it was called: ${missing.map(({ path }) => path).join(', ')}`;

/** Triggers for the next run: those that arrived during this run and still need one, and what the entry itself asks for. */
function nextTriggers({ state }: Transition, inputs: Inputs, ended: RunRecord): readonly Trigger[] {
  const pending = (state.pending?.triggers ?? []).filter(
    (one) => !timerReasons.has(one.reason) && isWanted(one, inputs, ended),
  );
  const fromEntry = entryTriggers(inputs, ended);
  // A pending trigger already names the cause.
  const isNamed = pending.some(({ reason }) => reason !== triggerReasons.remote && reason !== triggerReasons.forced);
  return isNamed && fromEntry[0]?.reason !== triggerReasons.deleting ? pending : mergeTriggers(fromEntry, pending);
}

/** The run that just ended serves these reasons. */
const timerReasons: ReadonlySet<string> = new Set([
  triggerReasons.interval,
  triggerReasons.requeue,
  triggerReasons.retry,
  triggerReasons.leaseOver,
]);
