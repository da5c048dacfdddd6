import { isDeepStrictEqual } from 'node:util';
import type { RunRecord } from './run-record.ts';
import type { Inputs, KeyState, NoRun, Row } from './step.ts';

const none: readonly never[] = [];

type Known = Pick<KeyState, 'stored' | 'doing' | 'row'>;

/** The row of a component as things are: what its last run came to, unless that was about other inputs or nothing is to be run. */
export function rowOf({ stored, doing, row }: Known, { digest, mayRun }: Pick<Inputs, 'digest' | 'mayRun'>): Row {
  const record = stored?.record;
  const last = record?.lastOutcome;
  const observedInputs = record && observed(record, doing);
  const rowWith = (state: Row['state'], { reason, message, missing = none }: Saying): Row => ({
    state,
    reason,
    message,
    missing,
    observedInputs,
    livelock: row?.livelock,
  });
  if (mayRun.may === 'no' && mayRun.why !== 'Suspended') return rowWith(notRun[mayRun.why], { reason: mayRun.why });
  if (mayRun.may === 'delete' || record?.operation === 'delete') {
    const isOfDelete = record?.operation === 'delete' && last?.seq === record.seq;
    return rowWith('Deleting', isOfDelete ? last : silent);
  }
  const reason = mayRun.may === 'no' ? 'Suspended' : undefined;
  switch (last?.outcome) {
    case 'Done':
      return observedInputs === digest
        ? rowWith('Done', last)
        : rowWith('Progressing', { reason: reason ?? 'InputsChanged' });
    case 'NotReady':
    case 'Progressing':
    case 'Failed':
      return rowWith(last.outcome, last);
    case 'Retry':
      return rowWith('Retrying', last);
    default:
      return rowWith('Progressing', { reason: reason ?? 'Pending' });
  }
}

type Saying = { readonly [Field in 'reason' | 'message' | 'missing']?: Row[Field] | undefined };

const silent: Saying = {};

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

/** Why nothing is run is its reason; Ready and the conditions of the registration say more. */
const notRun: Readonly<Record<Exclude<NoRun, 'Suspended'>, Row['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};
