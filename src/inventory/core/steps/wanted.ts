import type { RunRecord } from '../run-record.ts';
import type { Inputs } from '../step.ts';
import { type Trigger, trigger, triggerReasons } from '../triggers.ts';

/** The reason of an outcome whose missing inputs had been there all the time: waiting for them would be in vain. */
export const alreadySatisfied = 'MissingAlreadySatisfied';

/** Whether a trigger is worth a run. What it says of the entry is looked at, not believed: the digest decides. */
export function isWanted({ reason }: Trigger, inputs: Inputs, record: RunRecord | undefined): boolean {
  if (!record || entryWantsRun(inputs, record)) return true;
  switch (reason) {
    case 'Remote':
      // What failed for good waits for other inputs, for somebody's force or for its hour.
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

/** Whether the entry itself asks for a run: other inputs, what was missing, or its end. */
function entryWantsRun(inputs: Inputs, record: RunRecord): boolean {
  return inputs.digest !== record.inputsDigest || hasArrived(inputs, record) || isOtherOperation(inputs, record);
}

function hasArrived({ arrived }: Inputs, { lastOutcome }: RunRecord): boolean {
  return arrived && lastOutcome?.outcome === 'NotReady';
}

const isOtherOperation = ({ mayRun }: Inputs, { operation }: RunRecord): boolean =>
  mayRun.may === 'delete' && operation !== 'delete';

/** What the entry itself asks for, as triggers; none when the record is about the entry as it is. */
export function entryTriggers(inputs: Inputs, record: RunRecord | undefined): Trigger[] {
  const { created, inputChanged, inputArrived, deleting } = triggerReasons;
  if (!record) return [trigger(created)];
  if (isOtherOperation(inputs, record)) return [trigger(deleting)];
  if (inputs.digest !== record.inputsDigest) {
    const isFirst = record.inputsDigest === undefined && record.lastOutcome === undefined;
    return [trigger(isFirst ? created : inputChanged)];
  }
  const about = record.lastOutcome?.missing[0]?.path;
  return hasArrived(inputs, record) ? [trigger(inputArrived, { about })] : [];
}

/** Of a trigger whose time has come once already. */
export const withoutDelay = (one: Trigger): Trigger => ({ ...one, atMs: undefined });
