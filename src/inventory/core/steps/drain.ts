import type { Inputs } from '../key-state.ts';
import type { RunRecord } from '../run-record.ts';
import { trigger, triggerReasons } from '../triggers.ts';
import { type Ending, endedRecord, withoutCredential } from './ended-record.ts';
import type { Transition } from './transition.ts';
import { needsTeardown } from './wanted.ts';

/** Whether a user abandoned the component of the key. */
export const isComponentAbandoned = ({ mayRun }: Inputs): boolean => mayRun.may === 'no' && mayRun.why === 'Abandoned';

/** The end of a run whose component was abandoned during the run. */
const abandoned: Ending = {
  outcome: 'Retry',
  reason: 'Abandoned',
  message: 'the component was abandoned during the run',
};

/**
 * Retires a key that needs no teardown: its component was abandoned, or the entry is being deleted and the key has no record. Returns
 * whether it retired the key.
 */
export function retireIfUnneeded(transition: Transition, inputs: Inputs): boolean {
  const { stored } = transition.state;
  if (isComponentAbandoned(inputs)) retire(transition);
  else if (inputs.mayRun.may === 'delete' && !stored)
    transition.update({ phase: 'gone', pending: undefined, wake: undefined });
  else return false;
  transition.report(inputs);
  return true;
}

/**
 * Requests the removal of the outputs and then of the record. Without a record, no token of the component may write. The state keeps the
 * old record to recognize late events.
 */
export function retire(transition: Transition, ended?: RunRecord): void {
  const { stored } = transition.state;
  if (stored) transition.addEffect({ kind: 'retire', base: stored, ended });
  transition.update({
    phase: 'gone',
    pending: undefined,
    cause: undefined,
    wake: undefined,
    deadlineAt: undefined,
    outcome: undefined,
  });
}

/**
 * Handles the deletion of the entry, or the abandonment of the component. A current run with the operation `reconcile` loses its
 * credential, and must end before the server calls the component with `delete`. If the component was abandoned, a run in phase `running`
 * or `draining` ends at once. In the phases `starting` and `applying`, the key is retired by the event that ends the phase.
 */
export function onDeletionOrAbandonment(transition: Transition, inputs: Inputs): void {
  const { phase, stored, deadlineAt } = transition.state;
  const deletion = trigger(triggerReasons.deleting);
  switch (phase) {
    case 'gone':
      return;
    case 'idle':
    case 'queued':
      if (retireIfUnneeded(transition, inputs)) return;
      if (stored) {
        // Adds no `entryTriggers`: other changes of the entry arrive as triggers that name their causes.
        if (needsTeardown(inputs, stored.record)) transition.addTriggers(deletion);
        transition.scheduleNext(inputs);
      } else {
        // The component never ran, so there is nothing to tear down.
        transition.update({ phase: 'gone', pending: undefined, wake: undefined });
      }
      break;
    case 'starting':
    case 'applying':
      transition.addTriggers(deletion);
      break;
    case 'running':
    case 'draining':
      if (isComponentAbandoned(inputs)) {
        retire(transition, stored && endedRecord(transition, stored.record, abandoned));
      } else if (stored?.record.operation === 'reconcile') {
        transition.addTriggers(deletion);
        // In phase Applying, the run no longer has a credential.
        if (phase === 'draining' || stored.record.phase !== 'Running') break;
        transition.update({ phase: 'draining' });
        const { nowMs, monotonicMs } = transition.context;
        // The stored deadline lacks the unstored share of a heartbeat.
        const deadlineMs = nowMs + Math.max(0, (deadlineAt ?? monotonicMs) - monotonicMs);
        transition.store({ ...withoutCredential(stored.record), deadlineMs }, stored);
      }
      break;
  }
  transition.report(inputs);
}

/**
 * Makes a retired key idle again once its record is removed and a reconcile may run: a user withdrew the abandonment of its component.
 * Returns whether the key became idle.
 */
export function reviveIfWanted(transition: Transition, { mayRun }: Inputs): boolean {
  const { phase, stored } = transition.state;
  if (phase !== 'gone' || stored || mayRun.may !== 'reconcile') return false;
  transition.update({ phase: 'idle' });
  return true;
}
