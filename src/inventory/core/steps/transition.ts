import { isDeepStrictEqual } from 'node:util';
import type { RunRecord, StoredRecord } from '../run-record.ts';
import type { Effect, Inputs, KeyState, KeyStatus, NoRun, StepContext } from '../step.ts';
import { spacingOf } from '../timing.ts';
import { lanes, reasonText, type Trigger, triggerReasons, withTriggers } from '../triggers.ts';

/** One event being worked out: what the state becomes and what is to be done. */
export class Transition {
  state: KeyState;
  readonly effects: Effect[] = [];
  readonly context: StepContext;

  constructor(state: KeyState, context: StepContext) {
    this.state = state;
    this.context = context;
  }

  become(change: Partial<KeyState>): void {
    this.state = { ...this.state, ...change };
  }

  do(effect: Effect): void {
    this.effects.push(effect);
  }

  /** Writes the record; from here on the state has it as it is to be. */
  store(next: RunRecord, base: StoredRecord): void {
    this.do({ kind: 'store', next, base });
    this.become({ stored: { record: next, resourceVersion: base.resourceVersion } });
  }

  want(...triggers: readonly Trigger[]): void {
    if (triggers.length > 0) this.become({ pending: withTriggers(this.state.pending, triggers, this.context) });
  }

  /** No run is on: the key waits for its turn, its time, or an event. */
  settle({ mayRun }: Pick<Inputs, 'mayRun'>): void {
    const { pending, wake } = this.state;
    const isQueued = pending !== undefined && mayRun.may !== 'no';
    this.become({ phase: isQueued ? 'queued' : 'idle' });
    if (isQueued && (!wake || pending.dueAt <= wake.at)) {
      this.enqueueAt(pending.dueAt, pending.lane, pending.triggers.map(reasonText));
    } else if (wake) {
      this.enqueueAt(wake.at, lanes.time, [wake.reason]);
    }
  }

  /** The run that is on counts as lost then. */
  awaitLease(): void {
    const { leaseAt } = this.state;
    if (leaseAt !== undefined) this.enqueueAt(leaseAt, lanes.time, [triggerReasons.leaseOver]);
  }

  /** At that monotonic instant, but not sooner after the last start than the key may run. */
  enqueueAt(at: number, lane: Extract<Effect, { kind: 'enqueue' }>['lane'], reasons: readonly string[]): void {
    const { monotonicMs } = this.context;
    const delayMs = Math.max(0, at - monotonicMs, this.earliestStart() - monotonicMs);
    this.do({ kind: 'enqueue', delayMs, lane, reasons });
  }

  /** Monotonic milliseconds. */
  earliestStart(): number {
    const { lastStart, recent } = this.state;
    if (lastStart === undefined) return Number.NEGATIVE_INFINITY;
    return lastStart + spacingOf(recent, this.context.monotonicMs);
  }

  /** The row of the status, when it is another than before, or a run has ended. */
  report(inputs: Inputs, hasEnded = false): void {
    const row = statusOf(this.state, inputs);
    if (!hasEnded && sameStatus(row, this.state.status)) return;
    this.become({ status: row });
    this.do({ kind: 'tell', row });
  }
}

const none: readonly never[] = [];

type Known = Pick<KeyState, 'stored' | 'doing' | 'status'>;

/** The row of a component as things are: what its last run came to, unless that was about other inputs or nothing is to be run. */
function statusOf(
  { stored, doing, status: row }: Known,
  { digest, mayRun }: Pick<Inputs, 'digest' | 'mayRun'>,
): KeyStatus {
  const record = stored?.record;
  const last = record?.lastOutcome;
  const observedInputs = record && observed(record, doing);
  const rowWith = (state: KeyStatus['state'], { reason, message, missing = none }: Saying): KeyStatus => ({
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

type Saying = { readonly [Field in 'reason' | 'message' | 'missing']?: KeyStatus[Field] | undefined };

const silent: Saying = {};

function sameStatus(a: KeyStatus, b: KeyStatus | undefined): boolean {
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
const notRun: Readonly<Record<Exclude<NoRun, 'Suspended'>, KeyStatus['state']>> = {
  NotApplicable: 'NotApplicable',
  Disabled: 'NotApplicable',
  Abandoned: 'NotApplicable',
  TooLarge: 'Failed',
  RegistrationRefused: 'Failed',
};
