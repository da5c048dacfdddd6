import type { Inputs } from '../key-state.ts';
import type { RunRecord } from '../run-record.ts';
import { trigger, triggerReasons } from '../triggers.ts';
import { type Ending, endedRecord, withoutCredential } from './ended-record.ts';
import type { Transition } from './transition.ts';
import { needsTeardown } from './wanted.ts';

export const isComponentAbandoned = ({ mayRun }: Inputs): boolean => mayRun.may === 'no' && mayRun.why === 'Abandoned';

const abandoned: Ending = {
  outcome: 'Retry',
  reason: 'Abandoned',
  message: 'the component was abandoned during the run',
};

/** Retires a key whose component was abandoned, or that has no record to tear down. */
export function retireIfUnneeded(transition: Transition, inputs: Inputs): boolean {
  const { stored } = transition.state;
  if (isComponentAbandoned(inputs)) retire(transition);
  else if (inputs.mayRun.may === 'delete' && !stored)
    transition.update({ phase: 'gone', pending: undefined, wake: undefined });
  else return false;
  transition.report(inputs);
  return true;
}

/** Without a record, no token of the component may write. The state keeps it for late events. */
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
 * The entry is being deleted, or the component was abandoned. A run with the operation `reconcile`
 * loses its credential and must end before `delete` is called; an abandoned one in `running` or
 * `draining` ends at once. `starting` and `applying` end first.
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
        // No `entryTriggers`: other changes arrive as triggers that name their causes.
        if (needsTeardown(inputs, stored.record)) transition.addTriggers(deletion);
        transition.scheduleNext(inputs);
      } else {
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

/** Makes a retired key idle once its record is gone and its abandonment was withdrawn. */
export function reviveIfWanted(transition: Transition, { mayRun }: Inputs): boolean {
  const { phase, stored } = transition.state;
  if (phase !== 'gone' || stored || mayRun.may !== 'reconcile') return false;
  transition.update({ phase: 'idle' });
  return true;
}
