import { type Effect, freshKey, type KeyEvent, type KeyEventOf, type KeyState, type StepContext } from '../step.ts';
import { onConflict, onFound } from './adopt.ts';
import { goneFor, isAbandoned, onDeleting, retire } from './drain.ts';
import {
  loseRun,
  onAccepted,
  onApplied,
  onBroken,
  onHeartbeat,
  onLeaseOver,
  onNotAccepted,
  onOutcome,
} from './running.ts';
import { onStarted, onTurn } from './start.ts';
import { Transition } from './transition.ts';
import { alreadySatisfied, atOnce, isWanted } from './wanted.ts';

/** Pure and total: a key, an event, what follows. An event that does not fit the state changes nothing. */
export function step(
  state: KeyState,
  event: KeyEvent,
  context: StepContext,
): { readonly state: KeyState; readonly effects: readonly Effect[] } {
  const turn = new Transition(state, context);
  take(turn, believed(turn, event));
  return { state: turn.state, effects: turn.effects };
}

/**
 * What had been there before a run that missed it has not arrived, unless it was gone in between: the component may have read a later
 * version than the one that we had.
 */
function believed(turn: Transition, event: KeyEvent): KeyEvent {
  const { stored, missed } = turn.state;
  if (stored?.record.lastOutcome?.reason !== alreadySatisfied || !('inputs' in event)) return event;
  const { inputs } = event;
  if (!inputs.arrived && !missed) turn.become({ missed: true });
  return inputs.arrived && !missed ? { ...event, inputs: { ...inputs, arrived: false } } : event;
}

function take(turn: Transition, event: KeyEvent): void {
  switch (event.kind) {
    case 'trigger':
      onTrigger(turn, event);
      break;
    case 'slot':
      onSlot(turn, event);
      break;
    case 'started':
      if (turn.state.phase === 'starting') onStarted(turn, event.stored, event.inputs);
      break;
    case 'conflict':
      onConflict(turn, event);
      break;
    case 'found':
      onFound(turn, event);
      break;
    case 'accepted':
      onAccepted(turn, event);
      break;
    case 'heartbeat':
      onHeartbeat(turn, event);
      break;
    case 'outcome':
      onOutcome(turn, event);
      break;
    case 'applied':
      onApplied(turn, event);
      break;
    case 'broken':
      onBroken(turn, event);
      break;
    case 'notAccepted':
      onNotAccepted(turn, event);
      break;
    case 'leaseOver':
      onLeaseOver(turn, event);
      break;
    case 'deleting':
      onDeleting(turn, event.inputs);
      break;
    case 'gone':
      turn.become({ ...freshKey, phase: 'gone' });
      break;
  }
}

function onTrigger(turn: Transition, { trigger, inputs }: KeyEventOf<'trigger'>): void {
  const { phase, stored, doing } = turn.state;
  if (phase === 'gone') return;
  if (inputs.mayRun.may === 'delete' || isAbandoned(inputs)) onDeleting(turn, inputs);
  if (isAtRest(turn.state)) {
    if (!goneFor(turn, inputs)) {
      const isNew = isWanted(trigger, inputs, stored?.record);
      if (isNew) turn.want(trigger);
      if (isNew || (phase === 'idle' && turn.state.pending)) turn.settle(inputs);
    }
  } else if (turn.state.phase !== 'gone') {
    turn.want(trigger);
    if (inputs.digest !== (doing?.digest ?? stored?.record.inputsDigest)) turn.become({ strayed: true });
  }
  turn.report(inputs);
}

/** The queue hands the key out. While a run is on, all that it can mean is that its lease may be over. */
function onSlot(turn: Transition, { inputs }: KeyEventOf<'slot'>): void {
  const { phase, stored, doing, outcome, leaseAt } = turn.state;
  switch (phase) {
    case 'idle':
    case 'queued':
      onTurn(turn, inputs);
      break;
    case 'starting':
      // The start before could not be tried.
      turn.become({ phase: 'queued', doing: undefined });
      turn.want(...(doing?.triggers ?? []).map(atOnce));
      onTurn(turn, inputs);
      break;
    case 'running':
    case 'draining':
      if (leaseAt !== undefined && leaseAt > turn.context.monotonicMs) turn.awaitLease();
      else loseRun(turn, inputs);
      break;
    case 'applying':
      // The writing before could not be tried.
      if (outcome?.outputs) turn.do({ kind: 'apply', outputs: outcome.outputs });
      break;
    case 'gone':
      // Its record could not be taken out.
      if (stored) retire(turn);
      break;
  }
}

const isAtRest = ({ phase }: KeyState): boolean => phase === 'idle' || phase === 'queued';
