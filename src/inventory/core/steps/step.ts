import { alreadySatisfied } from '../../../api/inventory/describe-state.ts';
import type { Effect, KeyEvent, KeyEventOf, KeyState, StepContext } from '../key-state.ts';
import { onConflict, onRecordChanged } from './adopt.ts';
import { isComponentAbandoned, onDeletionOrAbandonment, retire, retireIfUnneeded, reviveIfWanted } from './drain.ts';
import {
  expireRun,
  onAccepted,
  onApplied,
  onCallFailed,
  onHeartbeat,
  onNotAccepted,
  onNotCalled,
  onOutcome,
  onReportRejected,
} from './running.ts';
import { onStarted, startIfWanted } from './start.ts';
import { Transition } from './transition.ts';
import { isWanted, withoutDelay } from './wanted.ts';

/**
 * The next state and effects of an event. Pure, apart from `context.random`; never throws. Ignores
 * events that do not fit the phase (see `KeyState`).
 *
 *   idle ─▶ queued ─▶ starting ─▶ running ──▶ (applying) ──▶ idle
 *                                    └─ entry deleted ─▶ draining ─▶ idle
 *   any phase ── torn down or abandoned ─▶ gone ── abandonment withdrawn ─▶ idle
 */
export function step(
  state: KeyState,
  event: KeyEvent,
  context: StepContext,
): { readonly state: KeyState; readonly effects: readonly Effect[] } {
  const transition = new Transition(state, context);
  dispatch(transition, withoutStaleArrival(transition, event));
  return { state: transition.state, effects: transition.effects };
}

/** After MissingAlreadySatisfied, inputs arrive only once one was missing: no endless repeats. */
function withoutStaleArrival(transition: Transition, event: KeyEvent): KeyEvent {
  const { stored, sawMissing } = transition.state;
  if (stored?.record.lastOutcome?.reason !== alreadySatisfied || !('inputs' in event)) return event;
  const { inputs } = event;
  if (!inputs.arrived && !sawMissing) transition.update({ sawMissing: true });
  return inputs.arrived && !sawMissing ? { ...event, inputs: { ...inputs, arrived: false } } : event;
}

function dispatch(transition: Transition, event: KeyEvent): void {
  switch (event.kind) {
    case 'trigger':
      onTrigger(transition, event);
      break;
    case 'dequeued':
      onDequeued(transition, event);
      break;
    case 'started':
      if (transition.state.phase === 'starting') onStarted(transition, event.stored, event.inputs);
      break;
    case 'conflict':
      onConflict(transition, event);
      break;
    case 'recordChanged':
      onRecordChanged(transition, event);
      break;
    case 'accepted':
      onAccepted(transition, event);
      break;
    case 'heartbeat':
      onHeartbeat(transition, event);
      break;
    case 'reportRejected':
      onReportRejected(transition, event);
      break;
    case 'outcome':
      onOutcome(transition, event);
      break;
    case 'applied':
      onApplied(transition, event);
      break;
    case 'callFailed':
      onCallFailed(transition, event);
      break;
    case 'notAccepted':
      onNotAccepted(transition, event);
      break;
    case 'notCalled':
      onNotCalled(transition, event);
      break;
    case 'endpointUnavailable':
      transition.recordUnavailableEndpoint(event.inputs);
      break;
    case 'deleting':
      onDeletionOrAbandonment(transition, event.inputs);
      break;
  }
}

function onTrigger(transition: Transition, { trigger, inputs }: KeyEventOf<'trigger'>): void {
  reviveIfWanted(transition, inputs);
  const { phase, stored, cause } = transition.state;
  if (phase === 'gone') {
    if (!stored) transition.report(inputs);
    return;
  }
  if (inputs.mayRun.may === 'delete' || isComponentAbandoned(inputs)) onDeletionOrAbandonment(transition, inputs);
  if (isIdleOrQueued(transition.state)) {
    if (!retireIfUnneeded(transition, inputs)) {
      const needsRun = isWanted(trigger, inputs, stored?.record);
      if (needsRun) transition.addTriggers(trigger);
      if (needsRun || (phase === 'idle' && transition.state.pending)) transition.scheduleNext(inputs);
    }
  } else if (transition.state.phase !== 'gone') {
    transition.addTriggers(trigger);
    if (inputs.digest !== (cause?.digest ?? stored?.record.inputsDigest)) transition.update({ inputsChanged: true });
  }
  transition.report(inputs);
}

/** Starts a due run, ends a run at its deadline, or repeats an effect that was not done. */
function onDequeued(transition: Transition, { inputs }: KeyEventOf<'dequeued'>): void {
  const { phase, stored, cause, outcome, deadlineAt } = transition.state;
  switch (phase) {
    case 'idle':
    case 'queued':
      startIfWanted(transition, inputs);
      break;
    case 'starting':
      // The previous start was not attempted.
      transition.update({ phase: 'queued', cause: undefined });
      transition.addTriggers(...(cause?.triggers ?? []).map(withoutDelay));
      startIfWanted(transition, inputs);
      break;
    case 'running':
    case 'draining':
      if (deadlineAt !== undefined && deadlineAt > transition.context.monotonicMs) transition.scheduleDeadline();
      else expireRun(transition, inputs);
      break;
    case 'applying':
      // The previous write of outputs was not attempted.
      if (outcome?.outputs) transition.addEffect({ kind: 'apply', outputs: outcome.outputs });
      break;
    case 'gone':
      // The previous removal of the record failed.
      if (stored) retire(transition);
      break;
  }
}

const isIdleOrQueued = ({ phase }: KeyState): boolean => phase === 'idle' || phase === 'queued';
