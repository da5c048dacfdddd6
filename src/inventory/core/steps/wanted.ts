import type { Inputs } from '../key-state.ts';
import type { RunRecord } from '../run-record.ts';
import { type Trigger, trigger, triggerReasons } from '../triggers.ts';

/**
 * Whether a trigger needs a run: always without a record, or if the entry itself needs one.
 * `InputArrived` needs one only if the awaited inputs hold; other changes have their own trigger,
 * so that the run's reason is true.
 */
export function isWanted({ reason }: Trigger, inputs: Inputs, record: RunRecord | undefined): boolean {
  if (!record) return true;
  if (reason === triggerReasons.inputArrived) return hasArrived(inputs, record);
  if (entryWantsRun(inputs, record)) return true;
  switch (reason) {
    case 'Remote':
      // A watched object does not repeat a Failed run.
      return record.lastOutcome?.outcome !== 'Failed';
    case 'Forced':
    case 'Interval':
    case 'Requeue':
    case 'Retry':
    case 'LeaseOver':
      return true;
    default:
      return false;
  }
}

/** Its inputs changed, all awaited inputs hold, or its teardown has not started. */
function entryWantsRun(inputs: Inputs, record: RunRecord): boolean {
  return inputs.digest !== record.inputsDigest || hasArrived(inputs, record) || needsTeardown(inputs, record);
}

function hasArrived({ arrived }: Inputs, { lastOutcome }: RunRecord): boolean {
  return arrived && lastOutcome?.outcome === 'NotReady';
}

/** Whether a repeated run may keep the reason `InputArrived`. */
export const mayHaveArrived = ({ arrived }: Inputs, record: RunRecord | undefined): boolean =>
  arrived || record?.lastOutcome?.outcome !== 'NotReady';

export const needsTeardown = ({ mayRun }: Inputs, { operation }: RunRecord): boolean =>
  mayRun.may === 'delete' && operation !== 'delete';

/** The trigger that follows from comparing the entry with the record, if any. */
export function entryTriggers(inputs: Inputs, record: RunRecord | undefined): Trigger[] {
  const { created, inputChanged, inputArrived, deleting } = triggerReasons;
  if (!record) return [trigger(created)];
  if (needsTeardown(inputs, record)) return [trigger(deleting)];
  if (inputs.digest !== record.inputsDigest) {
    const isFirst = record.inputsDigest === undefined && record.lastOutcome === undefined;
    return [trigger(isFirst ? created : inputChanged)];
  }
  const detail = record.lastOutcome?.missing[0]?.path;
  return hasArrived(inputs, record) ? [trigger(inputArrived, { detail })] : [];
}

export const withoutDelay = (due: Trigger): Trigger => ({ ...due, atMs: undefined });

/** Whether the trigger needs no run once any run has ended. */
export const isTimer = ({ reason }: Trigger): boolean => timerReasons.has(reason);

const timerReasons: ReadonlySet<string> = new Set([
  triggerReasons.interval,
  triggerReasons.requeue,
  triggerReasons.retry,
  triggerReasons.leaseOver,
]);
