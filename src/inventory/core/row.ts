import { isDeepStrictEqual } from 'node:util';
import type { RunRecord } from './run-record.ts';
import type { Inputs, KeyState, NoRun, Row } from './step.ts';

const none: readonly never[] = [];

type Known = Pick<KeyState, 'stored' | 'doing' | 'row'>;

/** The row of a component as things are: what its last run came to, unless that was about other inputs or nothing is to be run. */
export function rowOf({ stored, doing, row }: Known, { digest, mayRun }: Pick<Inputs, 'digest' | 'mayRun'>): Row {
  const record = stored?.record;
  const observedInputs = record && observed(record, doing);
  const base = { reason: undefined, message: undefined, missing: none, observedInputs, livelock: row?.livelock };
  if (mayRun.may === 'no' && mayRun.why !== 'Suspended') return { ...base, ...notRun[mayRun.why] };
  const last = record?.lastOutcome;
  const said = last && { reason: last.reason, message: last.message, missing: last.missing };
  if (mayRun.may === 'delete' || record?.operation === 'delete') {
    return { ...base, ...(record?.operation === 'delete' && last?.seq === record.seq ? said : {}), state: 'Deleting' };
  }
  const isSuspended = mayRun.may === 'no';
  switch (last?.outcome) {
    case 'Done':
      if (observedInputs === digest) return { ...base, ...said, state: 'Done' };
      return { ...base, state: 'Progressing', reason: isSuspended ? 'Suspended' : 'InputsChanged' };
    case 'NotReady':
    case 'Progressing':
    case 'Failed':
      return { ...base, ...said, state: last.outcome };
    case 'Retry':
      return { ...base, ...said, state: 'Retrying' };
    default:
      return { ...base, state: 'Progressing', reason: isSuspended ? 'Suspended' : 'Pending' };
  }
}

export function sameRow(a: Row, b: Row | undefined): boolean {
  return (
    b !== undefined &&
    a.state === b.state &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedInputs === b.observedInputs &&
    a.livelock === b.livelock &&
    (a.missing === b.missing || isDeepStrictEqual(a.missing, b.missing))
  );
}

/** What the last run that ended was about; undefined when that is not known any more. */
function observed(record: RunRecord, doing: KeyState['doing']): string | undefined {
  return record.phase === 'Idle' || record.seq === record.lastOutcome?.seq
    ? record.inputsDigest
    : doing?.before.inputsDigest;
}

const notRun: Readonly<Record<Exclude<NoRun, 'Suspended'>, Pick<Row, 'state' | 'reason' | 'message'>>> = {
  NotApplicable: { state: 'NotApplicable', reason: 'NotApplicable', message: undefined },
  Disabled: { state: 'NotApplicable', reason: 'Disabled', message: undefined },
  Abandoned: { state: 'NotApplicable', reason: 'Abandoned', message: undefined },
  TooLarge: { state: 'Failed', reason: 'TooLarge', message: 'the entry is above the size limit; nothing is run' },
  RegistrationRefused: {
    state: 'Failed',
    reason: 'RegistrationRefused',
    message: 'the registration breaks a rule; see its conditions',
  },
};
