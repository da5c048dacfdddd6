import type { Outcome } from '../../../api/inventory/contract/outcome.ts';
import type { ViolationCode } from '../../policy/violation.ts';
import type { RunRecord } from '../run-record.ts';
import type { Inputs, KeyEventOf, Published } from '../step.ts';
import { nextDelayMs, notAcceptedDelayMs, tokenLifetimeMs, unstoredShare, wakeReason } from '../timing.ts';
import { mergeTriggers, type Trigger, triggerReasons } from '../triggers.ts';
import { type Ending, endedRecord, isAbandoned, retire, withoutCredential } from './drain.ts';
import { released } from './start.ts';
import type { Transition } from './transition.ts';
import { alreadySatisfied, isWanted, newsOf } from './wanted.ts';

/** The component goes on by itself and reports: how long it may be silent. */
export function onAccepted(turn: Transition, { leaseMs }: KeyEventOf<'accepted'>): void {
  if (isOn(turn)) turn.do(answeredEffect);
  extend(turn, leaseMs, {});
}

/** It is alive. A new credential takes the place of the one before it, which stays good until it ends by itself. */
export function onHeartbeat(turn: Transition, { leaseMs, credential }: KeyEventOf<'heartbeat'>): void {
  const current = turn.state.stored?.record.credentialId;
  const isRefresh = credential !== undefined && current !== undefined && credential.id !== current;
  const expiresAtMs = turn.context.nowMs + tokenLifetimeMs;
  extend(
    turn,
    leaseMs,
    isRefresh ? { credentialId: credential.id, previousCredential: { id: current, expiresAtMs } } : {},
  );
}

function extend(
  turn: Transition,
  leaseMs: number,
  change: Partial<Pick<NonNullable<Transition['state']['stored']>['record'], 'credentialId' | 'previousCredential'>>,
): void {
  const { stored, lastStart } = turn.state;
  if (!stored || !isOn(turn)) return;
  const { nowMs, monotonicMs, registration } = turn.context;
  const leftMs = (lastStart ?? monotonicMs) + registration.maxRunMs - monotonicMs;
  const grantedMs = Math.max(0, Math.min(leaseMs, leftMs));
  turn.become({ leaseAt: monotonicMs + grantedMs });
  const { record } = stored;
  const gainedMs = nowMs + grantedMs - (record.leaseUntilMs ?? nowMs);
  // What is stored is for whoever leads next, who waits that much longer.
  const isWorthStoring =
    !record.asynchronous || 'credentialId' in change || Math.abs(gainedMs) >= grantedMs * unstoredShare;
  if (isWorthStoring) turn.store({ ...record, ...change, asynchronous: true, leaseUntilMs: nowMs + grantedMs }, stored);
  turn.awaitLease();
}

type Missing = KeyEventOf<'outcome'>['missing'];

export function onOutcome(turn: Transition, { seq, outcome, inputs, missing }: KeyEventOf<'outcome'>): void {
  const { phase, stored } = turn.state;
  if (!stored || stored.record.seq !== seq || (phase !== 'running' && phase !== 'draining')) return;
  if (!stored.record.asynchronous) turn.do(answeredEffect);
  const { operation } = stored.record;
  if (outcome.outcome === (operation === 'delete' ? 'Done' : 'Deleted')) {
    const message = `${outcome.outcome} is no outcome of ${operation}`;
    finish(turn, { outcome: 'Retry', reason: 'InvalidOutcome', message }, inputs, undefined);
  } else if (outcome.outcome === 'Deleted') {
    retire(turn, endedRecord(turn, stored.record, outcome));
    turn.report(inputs, true);
  } else if (phase === 'running' && hasOutputs(outcome)) {
    turn.become({ phase: 'applying', outcome, leaseAt: undefined });
    turn.store({ ...withoutCredential(stored.record), phase: 'Applying' }, stored);
    turn.do({ kind: 'apply', outputs: outcome.outputs });
  } else {
    finish(turn, outcome, inputs, missing);
  }
}

const answeredEffect = { kind: 'endpoint', verdict: 'answered', retryAfterMs: undefined } as const;

const hasOutputs = (outcome: Outcome): outcome is Published & Required<Pick<Published, 'outputs'>> =>
  'outputs' in outcome && outcome.outputs !== undefined;

export function onApplied(turn: Transition, { refusal, inputs }: KeyEventOf<'applied'>): void {
  const { phase, outcome } = turn.state;
  if (phase !== 'applying' || !outcome) return;
  finish(turn, refusal ? refused(refusal) : outcome, inputs, undefined);
}

const refused = ({ code, message }: { readonly code: string; readonly message: string }): Ending => ({
  outcome: ruleCodes.has(code) ? 'Failed' : 'Retry',
  reason: code,
  message,
});

/** Repeating these changes nothing: the component wrote what it may not. */
const ruleCodes: ReadonlySet<string> = new Set<ViolationCode>(['ForeignPath', 'ForeignSecret', 'EntryTooLarge']);

export function onBroken(turn: Transition, { code, message, inputs }: KeyEventOf<'broken'>): void {
  if (!isOn(turn)) return;
  turn.do(answeredEffect);
  finish(turn, { outcome: 'Retry', reason: code, message }, inputs, undefined);
}

export function onLeaseOver(turn: Transition, { inputs }: KeyEventOf<'leaseOver'>): void {
  const { leaseAt } = turn.state;
  if (!isOn(turn)) return;
  if (leaseAt !== undefined && leaseAt > turn.context.monotonicMs) turn.awaitLease();
  else loseRun(turn, inputs);
}

/** Nobody will hear of it any more. */
export function loseRun(turn: Transition, inputs: Inputs): void {
  finish(turn, { outcome: 'Retry', reason: 'LeaseOver', message: 'nothing was heard of the run' }, inputs, undefined);
}

const isOn = ({ state: { phase, stored } }: Transition): boolean =>
  stored !== undefined && (phase === 'running' || phase === 'draining');

/** The component has not had it. Its number and token are used up; everything else is as before it, and it is queued again. */
export function onNotAccepted(turn: Transition, { retryAfterMs, notCalled, inputs }: KeyEventOf<'notAccepted'>): void {
  const { stored, doing, pending } = turn.state;
  const { nowMs, monotonicMs, random } = turn.context;
  if (!stored || !isOn(turn)) return;
  if (!notCalled) turn.do({ kind: 'endpoint', verdict: 'failed', retryAfterMs });
  if (isAbandoned(inputs)) {
    retire(turn);
    turn.report(inputs);
  } else {
    const delayMs = notAcceptedDelayMs(retryAfterMs, random);
    const atMs = nowMs + delayMs;
    turn.store(released(stored.record, doing?.before, atMs), stored);
    const wake = { at: monotonicMs + delayMs, reason: triggerReasons.retry };
    turn.become({ phase: 'idle', doing: undefined, leaseAt: undefined, pending: undefined, wake });
    // When the endpoint may be asked again, whoever came meanwhile: it would be refused as well.
    turn.want(...mergeTriggers(doing?.triggers ?? [], pending?.triggers ?? []).map((one) => ({ ...one, atMs })));
    turn.settle(inputs);
    turn.report(inputs);
  }
}

function finish(turn: Transition, ending: Ending, inputs: Inputs, missing: Missing): void {
  const { stored } = turn.state;
  if (!stored) return;
  if (isAbandoned(inputs)) {
    retire(turn, endedRecord(turn, stored.record, ending));
    turn.report(inputs, true);
    return;
  }
  const { nowMs, monotonicMs, random, registration } = turn.context;
  const isInVain = ending.outcome === 'NotReady' && missing?.heldAtStart === true && missing.holdsNow;
  const ended = endedRecord(turn, stored.record, isInVain ? { ...ending, reason: alreadySatisfied } : ending);
  // Of this outcome, not of the one before it.
  const look: Inputs = { ...inputs, arrived: missing?.holdsNow === true && !isInVain };
  const again = againFor(turn, look, ended);
  const delayMs = nextDelayMs(ending, stored.record.attempt, registration, random);
  turn.store({ ...ended, nextAtMs: nowMs + (again.length > 0 ? 0 : delayMs) }, stored);
  turn.become({
    phase: 'idle',
    pending: undefined,
    doing: undefined,
    leaseAt: undefined,
    outcome: undefined,
    wake: { at: monotonicMs + delayMs, reason: wakeReason(ending.outcome) },
  });
  turn.report(look, true);
  if (isInVain) turn.do({ kind: 'warn', code: alreadySatisfied, message: inVain(ending) });
  turn.want(...again);
  turn.settle(inputs);
}

const inVain = ({ missing = [] }: Ending): string =>
  `it waits for what was there when it was called: ${missing.map(({ path }) => path).join(', ')}`;

/** What came during the run and still is worth another one, and what the entry asks for as it is now. */
function againFor({ state }: Transition, inputs: Inputs, ended: RunRecord): readonly Trigger[] {
  const came = (state.pending?.triggers ?? []).filter((one) => !byTime.has(one.reason) && isWanted(one, inputs, ended));
  const news = newsOf(inputs, ended);
  // Told by name already.
  const isTold = came.some(({ reason }) => reason !== triggerReasons.remote && reason !== triggerReasons.forced);
  return isTold && news[0]?.reason !== triggerReasons.deleting ? came : mergeTriggers(news, came);
}

/** The run that has just ended was as good. */
const byTime: ReadonlySet<string> = new Set([
  triggerReasons.interval,
  triggerReasons.requeue,
  triggerReasons.retry,
  triggerReasons.leaseOver,
]);
